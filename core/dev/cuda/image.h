/* image.h: the kernels as the driver takes them: a fat binary that nvcc made, or a line of text that begins with "CUEMU" where there was no nvcc. Of any size. */
#ifndef WEIR_DEV_CUDA_IMAGE_H
#define WEIR_DEV_CUDA_IMAGE_H

extern const unsigned char weir__cuda_image[], weir__cuda_image_end[];

#endif
