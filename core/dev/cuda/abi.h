/* abi.h: the part of the CUDA driver and cuBLAS binary interface that weir uses, written down so that no toolkit is needed to build. Facts from the
 * vendor's API reference; tests/cuemu/check_abi.c compares every line with cuda.h and cublas_v2.h where these exist. Knows nothing of weir.
 *
 * Defining WEIR_CUDA_ABI_CHECK leaves out the types and constants, for a file that has NVIDIA's. */
#ifndef WEIR_DEV_CUDA_ABI_H
#define WEIR_DEV_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifndef WEIR_CUDA_ABI_CHECK
typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef void (*CUhostFn)(void *);
typedef int CUdevice_attribute, CUfunction_attribute, CUstreamCaptureMode, CUstreamCaptureStatus;
typedef struct CUDA_KERNEL_NODE_PARAMS {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams, **extra;
    void *kern;
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;
typedef int cublasStatus_t, cublasOperation_t, cudaDataType, cublasComputeType_t, cublasGemmAlgo_t, cublasPointerMode_t;
typedef struct cublasContext *cublasHandle_t;
#endif

// clang-format off
/* X(name, value) */
#define WEIR_CUDA_ERRORS(X) \
    X(CUDA_SUCCESS, 0) \
    X(CUDA_ERROR_INVALID_VALUE, 1) \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2) \
    X(CUDA_ERROR_NOT_INITIALIZED, 3) \
    X(CUDA_ERROR_DEINITIALIZED, 4) \
    X(CUDA_ERROR_NO_DEVICE, 100) \
    X(CUDA_ERROR_INVALID_DEVICE, 101) \
    X(CUDA_ERROR_INVALID_IMAGE, 200) \
    X(CUDA_ERROR_INVALID_CONTEXT, 201) \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209) \
    X(CUDA_ERROR_INVALID_PTX, 218) \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222) \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214) \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220) \
    X(CUDA_ERROR_INVALID_HANDLE, 400) \
    X(CUDA_ERROR_NOT_FOUND, 500) \
    X(CUDA_ERROR_NOT_READY, 600) \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700) \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701) \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702) \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709) \
    X(CUDA_ERROR_ASSERT, 710) \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712) \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713) \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714) \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715) \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716) \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717) \
    X(CUDA_ERROR_INVALID_PC, 718) \
    X(CUDA_ERROR_LAUNCH_FAILED, 719) \
    X(CUDA_ERROR_NOT_PERMITTED, 800) \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803) \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900) \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901) \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902) \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903) \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904) \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905) \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906) \
    X(CUDA_ERROR_CAPTURED_EVENT, 907) \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908) \
    X(CUDA_ERROR_UNKNOWN, 999)

#define WEIR_CUDA_CONSTANTS(X) \
    X(CU_STREAM_NON_BLOCKING, 1) \
    X(CU_EVENT_DISABLE_TIMING, 2) \
    X(CU_STREAM_CAPTURE_MODE_GLOBAL, 0) \
    X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1) \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2) \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8) \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16) \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76) \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
    X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0) \
    X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1) \
    X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3) \
    X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4) \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8) \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0) \
    X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1) \
    X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)

#define WEIR_CUBLAS_CONSTANTS(X) \
    X(CUBLAS_STATUS_SUCCESS, 0) \
    X(CUBLAS_STATUS_NOT_INITIALIZED, 1) \
    X(CUBLAS_STATUS_INVALID_VALUE, 7) \
    X(CUBLAS_STATUS_EXECUTION_FAILED, 13) \
    X(CUBLAS_STATUS_NOT_SUPPORTED, 15) \
    X(CUBLAS_OP_N, 0) \
    X(CUBLAS_OP_T, 1) \
    X(CUDA_R_32F, 0) \
    X(CUDA_R_16F, 2) \
    X(CUDA_R_16BF, 14) \
    X(CUBLAS_COMPUTE_16F, 64) \
    X(CUBLAS_COMPUTE_32F, 68) \
    X(CUBLAS_COMPUTE_32F_FAST_TF32, 77) \
    X(CUBLAS_GEMM_DEFAULT, -1) \
    X(CUBLAS_POINTER_MODE_HOST, 0) \
    X(CUBLAS_POINTER_MODE_DEVICE, 1)

/* F(name in the table, exported symbol, parameters) */
#define WEIR_CUDA_FUNCTIONS(F) \
    F(Init, cuInit, (unsigned)) \
    F(DriverGetVersion, cuDriverGetVersion, (int *)) \
    F(GetErrorName, cuGetErrorName, (CUresult, const char **)) \
    F(GetErrorString, cuGetErrorString, (CUresult, const char **)) \
    F(DeviceGetCount, cuDeviceGetCount, (int *)) \
    F(DeviceGet, cuDeviceGet, (CUdevice *, int)) \
    F(DeviceGetName, cuDeviceGetName, (char *, int, CUdevice)) \
    F(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t *, CUdevice)) \
    F(DeviceGetAttribute, cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice)) \
    F(PrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) \
    F(PrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice)) \
    F(PrimaryCtxReset, cuDevicePrimaryCtxReset_v2, (CUdevice)) \
    F(CtxSetCurrent, cuCtxSetCurrent, (CUcontext)) \
    F(CtxGetCurrent, cuCtxGetCurrent, (CUcontext *)) \
    F(CtxSynchronize, cuCtxSynchronize, (void)) \
    F(MemGetInfo, cuMemGetInfo_v2, (size_t *, size_t *)) \
    F(MemAlloc, cuMemAlloc_v2, (CUdeviceptr *, size_t)) \
    F(MemFree, cuMemFree_v2, (CUdeviceptr)) \
    F(MemHostAlloc, cuMemHostAlloc, (void **, size_t, unsigned)) \
    F(MemFreeHost, cuMemFreeHost, (void *)) \
    F(MemHostRegister, cuMemHostRegister_v2, (void *, size_t, unsigned)) \
    F(MemHostUnregister, cuMemHostUnregister, (void *)) \
    F(MemcpyHtoD, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) \
    F(MemcpyDtoH, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
    F(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream)) \
    F(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream)) \
    F(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
    F(MemsetD8Async, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream)) \
    F(StreamCreate, cuStreamCreate, (CUstream *, unsigned)) \
    F(StreamDestroy, cuStreamDestroy_v2, (CUstream)) \
    F(StreamSynchronize, cuStreamSynchronize, (CUstream)) \
    F(StreamQuery, cuStreamQuery, (CUstream)) \
    F(StreamWaitEvent, cuStreamWaitEvent, (CUstream, CUevent, unsigned)) \
    F(EventCreate, cuEventCreate, (CUevent *, unsigned)) \
    F(EventDestroy, cuEventDestroy_v2, (CUevent)) \
    F(EventRecord, cuEventRecord, (CUevent, CUstream)) \
    F(EventSynchronize, cuEventSynchronize, (CUevent)) \
    F(EventQuery, cuEventQuery, (CUevent)) \
    F(EventElapsedTime, cuEventElapsedTime, (float *, CUevent, CUevent)) \
    F(LaunchHostFunc, cuLaunchHostFunc, (CUstream, CUhostFn, void *)) \
    F(ModuleLoadData, cuModuleLoadData, (CUmodule *, const void *)) \
    F(ModuleUnload, cuModuleUnload, (CUmodule)) \
    F(ModuleGetFunction, cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
    F(FuncGetAttribute, cuFuncGetAttribute, (int *, CUfunction_attribute, CUfunction)) \
    F(FuncSetAttribute, cuFuncSetAttribute, (CUfunction, CUfunction_attribute, int)) \
    F(FuncGetParamInfo, cuFuncGetParamInfo, (CUfunction, size_t, size_t *, size_t *)) \
    F(LaunchKernel, cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void \
        **, void **)) \
    F(StreamBeginCapture, cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode)) \
    F(StreamEndCapture, cuStreamEndCapture, (CUstream, CUgraph *)) \
    F(StreamIsCapturing, cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus *)) \
    F(ThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)) \
    F(GraphInstantiate, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long)) \
    F(GraphLaunch, cuGraphLaunch, (CUgraphExec, CUstream)) \
    F(GraphGetNodes, cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *)) \
    F(GraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2, (CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *)) \
    F(GraphExecDestroy, cuGraphExecDestroy, (CUgraphExec)) \
    F(GraphDestroy, cuGraphDestroy, (CUgraph))

#define WEIR_CUBLAS_FUNCTIONS(F) \
    F(Create, cublasCreate_v2, (cublasHandle_t *)) \
    F(Destroy, cublasDestroy_v2, (cublasHandle_t)) \
    F(SetStream, cublasSetStream_v2, (cublasHandle_t, CUstream)) \
    F(SetWorkspace, cublasSetWorkspace_v2, (cublasHandle_t, void *, size_t)) \
    F(SetPointerMode, cublasSetPointerMode_v2, (cublasHandle_t, cublasPointerMode_t)) \
    F(GemmEx, cublasGemmEx, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *, const void *, \
        cudaDataType, int, const void *, cudaDataType, int, const void *, void *, cudaDataType, int, cublasComputeType_t, \
        cublasGemmAlgo_t)) \
    F(GemmStridedBatchedEx, cublasGemmStridedBatchedEx, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const \
        void *, const void *, cudaDataType, int, long long, const void *, cudaDataType, int, long long, const void *, void *, \
        cudaDataType, int, long long, int, cublasComputeType_t, cublasGemmAlgo_t)) \
    F(GemmGroupedBatchedEx, cublasGemmGroupedBatchedEx, (cublasHandle_t, const cublasOperation_t *, const cublasOperation_t *, const \
        int *, const int *, const int *, const void *, const void *const *, cudaDataType, const int *, const void *const *, cudaDataType, \
        const int *, const void *, void *const *, cudaDataType, const int *, int, const int *, cublasComputeType_t))
// clang-format on

#ifndef WEIR_CUDA_ABI_CHECK
#define WEIR_CUDA_ENUMERATOR(name, value) name = (value),
enum { WEIR_CUDA_ERRORS(WEIR_CUDA_ENUMERATOR) WEIR_CUDA_CONSTANTS(WEIR_CUDA_ENUMERATOR) };
enum { WEIR_CUBLAS_CONSTANTS(WEIR_CUDA_ENUMERATOR) };
#undef WEIR_CUDA_ENUMERATOR
#endif

#endif
