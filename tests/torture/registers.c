/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torture, registers: values that live in general, mask, vector and x87 registers over long loops, rounding modes that are
 * not the usual ones, and a chain of numbers that is the same on every run. See torture.h.
 */
#include "torture.h"

#include <fenv.h>
#include <stddef.h>
#include <string.h>

#define REGISTERS_SPIN 400000UL
#define REGISTERS_WORDS 1024
#define REGISTERS_CHAIN 64

#ifdef __x86_64__
#define HOLD_LOAD(kind, n) "vmovups " #n "*64(%1), %%" kind #n "\n\t"
#define HOLD_STORE(kind, n) "vmovups %%" kind #n ", " #n "*64(%2)\n\t"
#define HOLD_LOW(op, kind)                                                                                   \
    op(kind, 0) op(kind, 1) op(kind, 2) op(kind, 3) op(kind, 4) op(kind, 5) op(kind, 6) op(kind, 7)          \
        op(kind, 8) op(kind, 9) op(kind, 10) op(kind, 11) op(kind, 12) op(kind, 13) op(kind, 14)             \
            op(kind, 15)
#define HOLD_HIGH(op, kind)                                                                                  \
    op(kind, 16) op(kind, 17) op(kind, 18) op(kind, 19) op(kind, 20) op(kind, 21) op(kind, 22) op(kind, 23)  \
        op(kind, 24) op(kind, 25) op(kind, 26) op(kind, 27) op(kind, 28) op(kind, 29) op(kind, 30)           \
            op(kind, 31)
#define HOLD_MASKS(op) op(1) op(2) op(3) op(4) op(5) op(6) op(7)
#define HOLD_LOAD_MASK(n) "kmovw " #n "*8(%1), %%k" #n "\n\t"
#define HOLD_STORE_MASK(n) "kmovw %%k" #n ", " #n "*8(%3)\n\t"
#define HOLD_GENERAL(op) op(8) op(9) op(10) op(11) op(12) op(13) op(14) op(15)
#define HOLD_LOAD_GENERAL(n) "mov " #n "*16(%1), %%r" #n "\n\t"
#define HOLD_STORE_GENERAL(n) "mov %%r" #n ", 64+(" #n "-8)*8(%3)\n\t"
#define HOLD_WAIT "1: dec %0\n\tjnz 1b\n\t"
#define HOLD_CLOBBERS                                                                                        \
    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",    \
        "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc"

struct registers_hold {
    unsigned char in[32][64];
    unsigned char vectors[32][64];
    uint64_t others[16]; /* k1 to k7 from [1], r8 to r15 from [8] */
};

__attribute__((target("avx"), noinline)) static void registers_hold_ymm(struct registers_hold *h,
                                                                        unsigned long n) {
    __asm__ volatile(HOLD_LOW(HOLD_LOAD, "ymm") HOLD_GENERAL(HOLD_LOAD_GENERAL)
                         HOLD_WAIT HOLD_LOW(HOLD_STORE, "ymm") HOLD_GENERAL(HOLD_STORE_GENERAL) "vzeroupper"
                     : "+&c"(n)
                     : "S"(h->in), "D"(h->vectors), "d"(h->others)
                     : HOLD_CLOBBERS);
}

__attribute__((target("avx512f"), noinline)) static void registers_hold_zmm(struct registers_hold *h,
                                                                            unsigned long n) {
    __asm__ volatile(HOLD_LOW(HOLD_LOAD, "zmm") HOLD_HIGH(HOLD_LOAD, "zmm") HOLD_MASKS(HOLD_LOAD_MASK)
                         HOLD_GENERAL(HOLD_LOAD_GENERAL) HOLD_WAIT HOLD_LOW(HOLD_STORE, "zmm")
                             HOLD_HIGH(HOLD_STORE, "zmm") HOLD_MASKS(HOLD_STORE_MASK)
                                 HOLD_GENERAL(HOLD_STORE_GENERAL) "vzeroupper"
                     : "+&c"(n)
                     : "S"(h->in), "D"(h->vectors), "d"(h->others)
                     : HOLD_CLOBBERS, "k1", "k2", "k3", "k4", "k5", "k6", "k7", "xmm16", "xmm17", "xmm18",
                       "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
                       "xmm28", "xmm29", "xmm30", "xmm31");
}

static void registers_check_hold(int slot, const struct registers_hold *h, bool wide) {
    for (int i = 0; i < (wide ? 32 : 16); i++)
        torture_check(slot, memcmp(h->in[i], h->vectors[i], wide ? 64 : 32) == 0,
                      "a vector register has another value");
    for (int i = 1; i < 8 && wide; i++)
        torture_check(slot, memcmp(&h->others[i], (const char *)h->in + i * 8, 2) == 0,
                      "a mask register has another value");
    for (int i = 8; i < 16; i++)
        torture_check(slot, memcmp(&h->others[i], (const char *)h->in + i * 16, 8) == 0,
                      "a general register has another value");
}

static int registers_widest(void) {
    return __builtin_cpu_supports("avx512f") ? 512 : __builtin_cpu_supports("avx") ? 256 : 0;
}

void *torture_vectors(void *arg) {
    int slot = (int)(intptr_t)arg, width = registers_widest();
    struct registers_hold h;
    uint64_t random = 5;
    for (;;) {
        torture_round(slot);
        for (size_t i = 0; i < sizeof h.in; i++)
            h.in[i / 64][i % 64] = (unsigned char)torture_random(&random);
        memset(h.vectors, 0, sizeof h.vectors);
        memset(h.others, 0, sizeof h.others);
        if (width == 512)
            registers_hold_zmm(&h, REGISTERS_SPIN);
        else if (width == 256)
            registers_hold_ymm(&h, REGISTERS_SPIN);
        if (width)
            registers_check_hold(slot, &h, width == 512);
        torture_nap(slot, 1000);
    }
    return NULL;
}

/* Sixteen chains of multiply and add, all of which live in registers. */
__attribute__((target("avx2,fma"), noinline)) static void registers_chain(double out[4][4], unsigned long n) {
    static const double factor[4] = {0.999999, 1.0000001, 0.99999987, 1.00000013};
    __asm__ volatile("vmovupd (%1), %%ymm8\n\t"
                     "vmovapd %%ymm8, %%ymm0\n\tvaddpd %%ymm8, %%ymm8, %%ymm1\n\t"
                     "vmulpd %%ymm8, %%ymm1, %%ymm2\n\tvaddpd %%ymm1, %%ymm2, %%ymm3\n\t"
                     "1:\n\t"
                     "vfmadd213pd %%ymm8, %%ymm8, %%ymm0\n\tvfmadd213pd %%ymm0, %%ymm8, %%ymm1\n\t"
                     "vfnmadd213pd %%ymm1, %%ymm8, %%ymm2\n\tvfmsub213pd %%ymm2, %%ymm8, %%ymm3\n\t"
                     "dec %0\n\tjnz 1b\n\t"
                     "vmovupd %%ymm0, (%2)\n\tvmovupd %%ymm1, 32(%2)\n\t"
                     "vmovupd %%ymm2, 64(%2)\n\tvmovupd %%ymm3, 96(%2)\n\tvzeroupper"
                     : "+&r"(n)
                     : "r"(factor), "r"(out)
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm8", "memory", "cc");
}

void *torture_fma(void *arg) {
    int slot = (int)(intptr_t)arg;
    bool able = __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
    double first[4][4] = {{0}}, now[4][4] = {{0}};
    if (able)
        registers_chain(first, REGISTERS_SPIN / 16);
    for (;;) {
        torture_round(slot);
        if (able)
            registers_chain(now, REGISTERS_SPIN / 16);
        torture_check(slot, memcmp(first, now, sizeof now) == 0, "a sum of products is another one");
        torture_nap(slot, 1000);
    }
    return NULL;
}

/* Seven constants rest on the x87 stack meanwhile. */
static void registers_hold_x87(unsigned char out[7][16], unsigned long n) {
    __asm__ volatile("fld1\n\tfldl2t\n\tfldl2e\n\tfldpi\n\tfldlg2\n\tfldln2\n\tfldz\n\t"
                     "1: dec %0\n\tjnz 1b\n\t"
                     "fstpt (%1)\n\tfstpt 16(%1)\n\tfstpt 32(%1)\n\tfstpt 48(%1)\n\t"
                     "fstpt 64(%1)\n\tfstpt 80(%1)\n\tfstpt 96(%1)"
                     : "+&r"(n)
                     : "r"(out)
                     : "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "memory", "cc");
}

static uint32_t registers_mxcsr(void) {
    uint32_t value;
    __asm__ volatile("stmxcsr %0" : "=m"(value));
    return value;
}

static uint16_t registers_x87_control(void) {
    uint16_t value;
    __asm__ volatile("fnstcw %0" : "=m"(value));
    return value;
}

void *torture_x87(void *arg) {
    int slot = (int)(intptr_t)arg;
    static __thread unsigned char first[7][16], now[7][16];
    (void)fesetround(FE_UPWARD);
    volatile double third = 3.0;
    volatile long double long_third = 3.0L;
    double sum = 1.0 / third;
    long double long_sum = 1.0L / long_third;
    registers_hold_x87(first, 1);
    uint32_t mxcsr = registers_mxcsr();
    uint16_t control = registers_x87_control();
    for (;;) {
        torture_round(slot);
        registers_hold_x87(now, REGISTERS_SPIN);
        torture_check(slot, memcmp(first, now, sizeof now) == 0, "the x87 stack has other values");
        torture_check(slot, registers_mxcsr() == mxcsr, "MXCSR has changed");
        torture_check(slot, registers_x87_control() == control, "the x87 control word has changed");
        torture_check(slot, 1.0 / third == sum && 1.0L / long_third == long_sum,
                      "numbers are rounded otherwise");
        torture_nap(slot, 1000);
    }
    return NULL;
}
#else
static void *registers_idle(int slot) {
    for (;;) {
        torture_round(slot);
        torture_nap(slot, 1000);
    }
    return NULL;
}
void *torture_vectors(void *arg) { return registers_idle((int)(intptr_t)arg); }
void *torture_fma(void *arg) { return registers_idle((int)(intptr_t)arg); }
void *torture_x87(void *arg) { return registers_idle((int)(intptr_t)arg); }
#endif

uint64_t torture_numbers(uint64_t seed, uint64_t rounds) {
    double x[REGISTERS_WORDS];
    uint64_t random = seed, bits = 0;
    for (int i = 0; i < REGISTERS_WORDS; i++)
        x[i] = (double)torture_random(&random) / 4294967296.0;
    for (uint64_t round = 0; round < rounds * REGISTERS_CHAIN; round++)
        for (int i = 0; i < REGISTERS_WORDS; i++)
            x[i] = 3.8 * x[i] * (1.0 - x[i]) + x[(i * 7 + 1) % REGISTERS_WORDS] * 1e-4;
    for (int i = 0; i < REGISTERS_WORDS; i++) {
        uint64_t word;
        memcpy(&word, &x[i], sizeof word);
        bits = (bits << 7 | bits >> 57) ^ word;
    }
    return bits;
}
