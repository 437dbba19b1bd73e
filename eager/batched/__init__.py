"""The Batched layer: values of ``vmap``, its one boxed kernel, the rules that it reads, and the loop without one."""
