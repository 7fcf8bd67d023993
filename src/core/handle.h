/* Handles held by the user: communicators, requests, windows. A call checks that a given pointer is a live handle
 * before it dereferences it, so that a destroyed or freed handle is an error and not a crash. */
#ifndef GY_CORE_HANDLE_H
#define GY_CORE_HANDLE_H

#include "base.h"

/* The memory of a freed handle may be reused for a handle of another kind. Fits the bits that an address's alignment
 * leaves. */
enum gy_handle_kind { GY_HANDLE_COMM = 2, GY_HANDLE_REQUEST, GY_HANDLE_WINDOW, GY_HANDLE_MEMORY };

/* From any thread. Adding cannot fail: a handle for which there is no room is merely not known. */
void gy_handle_add(const void *handle, enum gy_handle_kind kind);
void gy_handle_remove(const void *handle, enum gy_handle_kind kind);
/* Returns false if the handle was never created, or is freed. A freed one counts as live again when its memory is
 * reused for a handle of its kind. While the set is full and some live handles have no entry, returns true for all. */
bool gy_handle_lives(const void *handle, enum gy_handle_kind kind);

#endif
