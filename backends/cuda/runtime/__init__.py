"""Driver, devices, streams, memory and launches.

toolkit.py: the driver, compiler and libraries in use, and missing requirements
driver.py: functions of the CUDA driver
api.py: functions of the CUDA runtime, through cupy
devices.py: devices, and the current device of a thread
info.py: public queries of devices
streams.py: streams and events
stream_keys.py: the current stream of each thread for native code
memory.py: buffers, pools of free blocks, statistics
arrays.py: layouts and arrays
external_buffers.py: memory that other libraries own
constant_buffers.py: constants of compiled graphs
copies.py: copies between host and device, page-locked memory
interop.py: DLPack and __cuda_array_interface__
faults.py: indices out of bounds, found by kernels
compiler.py: NVRTC and its disk cache
modules.py: loaded modules of device code
launching.py: kernel launches
launcher.py: native launchers
"""
