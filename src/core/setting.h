/* Kinds of setting: how the text of a value is understood and, where ranks compare their settings, written again.
 *
 * A kind knows nothing of a single setting: bounds, length and default are in the setting's row, of which config.c has
 * one for each. What parse() left in the field counts only if it returned true; print() gives equal values equal
 * texts on every rank. */
#ifndef GY_CORE_SETTING_H
#define GY_CORE_SETTING_H

#include "base.h"

struct gy_setting;

struct gy_setting_kind {
    bool (*parse)(const struct gy_setting *setting, const char *text, void *field); /* false: not understood */
    void (*print)(const struct gy_setting *setting, const void *field, char *text_p, size_t bytes);
    const char *const *words; /* that parse() knows, NULL at the end; or NULL */
};

/* SECRET: never printed. SHARED: every rank must have the same value, and the help text ends by saying so. */
enum gy_setting_trait { GY_SETTING_PLAIN, GY_SETTING_SECRET, GY_SETTING_SHARED };

struct gy_setting {
    const char *name;
    const struct gy_setting_kind *kind;
    size_t offset, size; /* of the field in struct gy_config */
    int64_t least, most; /* a number in the field's unit, or the least length of a text that is not empty */
    const char *initial, *unit, *help;
    const char *allowed; /* the end of "... must be " */
    enum gy_setting_trait trait;
};

extern const struct gy_setting_kind gy_setting_switch;    /* bool: 0, 1 */
extern const struct gy_setting_kind gy_setting_order;     /* bool: shape, canonical */
extern const struct gy_setting_kind gy_setting_ends;      /* bool: local, uniform */
extern const struct gy_setting_kind gy_setting_integrity; /* int, enum gy_integrity: off, crc, mac, encrypt */
extern const struct gy_setting_kind gy_setting_level;     /* int, enum gy_log_level */
extern const struct gy_setting_kind gy_setting_int;       /* int, perhaps negative */
extern const struct gy_setting_kind gy_setting_time;      /* int64_t, nanoseconds */
extern const struct gy_setting_kind gy_setting_spin;      /* int64_t, nanoseconds; the text has microseconds, or -1 */
extern const struct gy_setting_kind gy_setting_size;      /* size_t */
extern const struct gy_setting_kind gy_setting_power;     /* size_t, a power of two */
/* Arrays of char: */
extern const struct gy_setting_kind gy_setting_text;
extern const struct gy_setting_kind gy_setting_launcher;   /* "", or a launcher's name */
extern const struct gy_setting_kind gy_setting_names;      /* "shm,tcp" */
extern const struct gy_setting_kind gy_setting_interfaces; /* "", or up to GY_RAILS_MOST names or addresses */
extern const struct gy_setting_kind gy_setting_hierarchy;  /* "host", "numa", "cache", "off", or "2,2,3" */
extern const struct gy_setting_kind gy_setting_choices;    /* "", or "all_reduce:ring,broadcast:binary_tree" */
/* No field: the text is only checked. gy_secret_variable_take reads it. */
extern const struct gy_setting_kind gy_setting_secret;
/* struct gy_tuning: the file is read at once, so that a bad one is found before any rank waits. */
extern const struct gy_setting_kind gy_setting_tuning;

#endif
