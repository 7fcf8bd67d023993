#include "top/json_text.h"

#include <stddef.h>

/* Returns the bytes of the UTF-8 character at `text`, 0: it is none. Overlong forms, surrogates and values above
 * U+10FFFF are none. */
static size_t character(const unsigned char *text)
{
    static const struct {
        unsigned char first, last, second_least, second_most;
        size_t bytes;
    } forms[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
                 {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                 {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (text[0] < forms[i].first || text[0] > forms[i].last)
            continue;
        if (text[1] < forms[i].second_least || text[1] > forms[i].second_most)
            return 0;
        for (size_t at = 2; at < forms[i].bytes; at++)
            if ((text[at] & 0xc0) != 0x80)
                return 0;
        return forms[i].bytes;
    }
    return 0;
}

void top_json_text(FILE *stream, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    fputc('"', stream);
    while (*at) {
        size_t bytes = *at < 0x80 ? 1 : character(at);
        if (bytes == 1 && (*at < ' ' || *at == '"' || *at == '\\' || *at == 0x7f))
            fprintf(stream, "\\u%04x", *at);
        else if (bytes == 0)
            fputc('?', stream);
        else
            fwrite(at, 1, bytes, stream);
        at += bytes > 0 ? bytes : 1;
    }
    fputc('"', stream);
}
