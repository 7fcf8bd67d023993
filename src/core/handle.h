/* Handles that the user holds: communicators, requests, windows. A call asks whether the pointer that it is given is one of
 * them before it looks at what it points to, so that one that was destroyed or freed is an error and not a crash. */
#ifndef GY_CORE_HANDLE_H
#define GY_CORE_HANDLE_H

#include "base.h"

/* The memory of one that has gone may serve a handle of another kind. Fits the bits that an address's alignment leaves. */
enum gy_handle_kind { GY_HANDLE_COMM = 2, GY_HANDLE_REQUEST, GY_HANDLE_WINDOW, GY_HANDLE_MEMORY };

/* From any thread. Adding cannot fail: a handle for which there is no room is merely not known. */
void gy_handle_add(const void *handle, enum gy_handle_kind kind);
void gy_handle_remove(const void *handle, enum gy_handle_kind kind);
/* False: nobody has made it, or it has gone. One that has gone is known again when its memory serves another handle of its
 * kind; and while some of those that live found no room, all pass. */
bool gy_handle_lives(const void *handle, enum gy_handle_kind kind);

#endif
