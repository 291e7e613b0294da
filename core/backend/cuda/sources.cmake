# The sources of the CUDA backend, for the backend itself and for its tests on the CPU.
set(TENSORD_CUDA_HOST_SOURCES
  contraction_kernels.cc
  cuda_backend.cc
  cuda_device.cc
  cuda_event.cc
  cuda_memory.cc
  cuda_module.cc
  cuda_stream.cc
  cycle_model.cc
  elementwise_kernels.cc
  permutation_packed.cc
  permutation_reference.cc
  permutation_tiled.cc
  permutation_tiled_copy.cc
  permutation_trivial.cc
  permutation_words.cc
  reduction_kernels.cc)
set(TENSORD_CUDA_KERNEL_SOURCES
  kernel/contraction_reference.cu
  kernel/elementwise_fused.cu
  kernel/elementwise_reference.cu
  kernel/elementwise_tiled.cu
  kernel/permutation_packed.cu
  kernel/permutation_reference.cu
  kernel/permutation_tiled.cu
  kernel/permutation_tiled_copy.cu
  kernel/reduction_reference.cu
  kernel/reduction_tree.cu)
list(TRANSFORM TENSORD_CUDA_HOST_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM TENSORD_CUDA_KERNEL_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
