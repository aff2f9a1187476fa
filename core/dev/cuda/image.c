/* image.c: embeds build/kernels.fatbin (kernels/cuda/CMakeLists.txt) into the library, at the alignment that the driver wants of a fat binary, and a zero after it. */
#include "image.h"

__asm__(".section .rodata\n"
        ".balign 64\n"
        ".globl weir__cuda_image\n"
        ".hidden weir__cuda_image\n"
        "weir__cuda_image:\n"
        ".incbin \"" WEIR_CUDA_IMAGE "\"\n"
        ".globl weir__cuda_image_end\n"
        ".hidden weir__cuda_image_end\n"
        "weir__cuda_image_end:\n"
        ".byte 0\n"
        ".previous\n");
