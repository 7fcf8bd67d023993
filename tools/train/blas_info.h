/* The kernels that OpenBLAS computes with. */
#ifndef GYRE_TRAIN_KERNELS_H
#define GYRE_TRAIN_KERNELS_H

/* To be called first: may start the program anew, with OPENBLAS_CORETYPE set. Returns where there is nothing to do. */
void kernels_choose(char **argv);

#endif
