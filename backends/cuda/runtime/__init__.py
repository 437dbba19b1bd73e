"""Driver, devices, streams, memory and launches.

toolkit.py: the driver, compiler and libraries in use, and missing requirements
driver.py: functions of the CUDA driver
api.py: functions of the CUDA runtime, through cupy
devices.py: devices, the current device of a thread, public queries
streams.py: streams and events, and the current stream of each thread for Python and for native code
memory.py: buffers, pools of free blocks, memory that other libraries own, statistics
arrays.py: layouts and arrays
copies.py: copies between host and device, constants of compiled graphs, page-locked memory
interop.py: DLPack and __cuda_array_interface__
faults.py: indices out of bounds, found by kernels
compiler.py: NVRTC and its disk cache
launching.py: loaded modules of device code, and kernel launches by native code and by Python
"""
