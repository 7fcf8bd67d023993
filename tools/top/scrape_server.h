/* Answers scrapes over HTTP on loopback, one after the other. */
#ifndef GYRE_TOOLS_TOP_SCRAPE_SERVER_H
#define GYRE_TOOLS_TOP_SCRAPE_SERVER_H

#include <stddef.h>

/* Listens at 127.0.0.1. Returns the socket; −1: errno. */
int top_scrape_listen(int port);
/* Answers with `text` for `milliseconds`; NULL: nothing can be said yet, status 503. A request has 4 KiB and one
 * second at most. */
void top_scrape_serve(int listener, const char *text, size_t length, long milliseconds);

#endif
