#include <criterion/criterion.h>
#include <string.h>

#include "net/address.h"

Test(address, tcp)
{
    struct gy_address address;

    cr_assert(gy_address_parse("tcp://10.1.2.3:29500", &address));
    cr_assert_eq(address.kind, GY_ADDRESS_TCP);
    cr_assert_str_eq(address.host, "10.1.2.3");
    cr_assert_eq(address.port, 29500);
    cr_assert(gy_address_parse("tcp://[fe80::1%eth0]:1", &address));
    cr_assert_str_eq(address.host, "fe80::1%eth0");
    cr_assert_eq(address.port, 1);
    cr_assert(gy_address_parse("tcp://node-7.example.org:65535", &address));
}

Test(address, file)
{
    struct gy_address address;

    cr_assert(gy_address_parse("file:///shared/meet", &address));
    cr_assert_eq(address.kind, GY_ADDRESS_FILE);
    cr_assert_str_eq(address.path, "/shared/meet");
}

Test(address, nonsense)
{
    static const char *const texts[] = {"",
                                        "tcp://",
                                        "tcp://host",
                                        "tcp://host:",
                                        "tcp://:1",
                                        "tcp://host:0",
                                        "tcp://host:65536",
                                        "tcp://host:12x",
                                        "tcp://::1:5",
                                        "tcp://[::1]",
                                        "tcp://[]:1",
                                        "tcp://[::1:5",
                                        "file://relative",
                                        "file:///",
                                        "file:///dir/",
                                        "udp://host:1",
                                        "host:1",
                                        "tcp://host:-1"};
    struct gy_address address = {.port = 7};
    char text[600];

    for (size_t i = 0; i < GY_ARRAY_LENGTH(texts); i++)
        cr_assert_not(gy_address_parse(texts[i], &address), "\"%s\" was taken", texts[i]);
    memset(text, 'a', sizeof(text));
    memcpy(text, "file:///", 8);
    text[sizeof(text) - 1] = '\0';
    cr_assert_not(gy_address_parse(text, &address));
    memcpy(text, "tcp://aa", 8);
    memcpy(text + sizeof(text) - 4, ":10", 4);
    cr_assert_not(gy_address_parse(text, &address));
    cr_assert_eq(address.port, 7, "written although not understood");
}

Test(address, wire_round_trip)
{
    static const char *const hosts[] = {"127.0.0.1", "::1"};
    struct sockaddr_storage address, back;
    uint8_t wire[GY_ADDRESS_WIRE];

    for (size_t i = 0; i < GY_ARRAY_LENGTH(hosts); i++) {
        cr_assert_eq(gy_address_resolve(hosts[i], 4711, &address, NULL), GYRE_SUCCESS);
        gy_address_encode(&address, wire);
        cr_assert(gy_address_decode(wire, &back));
        cr_assert_eq(memcmp(&address, &back, gy_address_bytes(&address)), 0);
        cr_assert_eq(gy_address_port(&back), 4711);
    }
    memset(wire, 0xff, sizeof(wire));
    cr_assert_not(gy_address_decode(wire, &back));
}
