/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tiny agent for the tests of the injector, compiled by them: what the ABI asks for and nothing else. It listens at
 * its endpoint (so that a second injection finds it) and gives back region, thread and descriptor.
 *
 * -DAGENT_TEST_VERSION="..." its version; -DAGENT_TEST_FAILS: probing_start refuses; -DAGENT_TEST_UNDEFINED: cannot be
 * loaded; -DAGENT_TEST_NO_ENTRY: exports nothing; -DAGENT_TEST_SLOW=N: takes N seconds to start. When the variable below is set to 1 through the socket, it parks:
 * closes its socket and ends its thread, the code stays.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/agent_abi.h"

#define EXPORTED __attribute__((visibility("default")))

#ifdef AGENT_TEST_UNDEFINED
int a_function_that_does_not_exist(void);
EXPORTED int probing_broken(void);
EXPORTED int probing_broken(void) { return a_function_that_does_not_exist(); }
#endif

#ifndef AGENT_TEST_NO_ENTRY
extern const char probing_version[];
EXPORTED const char probing_version[] = AGENT_TEST_VERSION;
int probing_start(struct agent_start *start);

struct agent {
    pthread_t starter;
    void *region;
    size_t region_size;
    int fd, listener;
    char path[108];
};

static struct agent agent;
static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER;
static int agent_runs;

static void *agent_serve(void *arg) {
    (void)arg;
    (void)pthread_join(agent.starter, NULL);
    if (agent.region)
        (void)munmap(agent.region, agent.region_size);
    if (agent.fd >= 0)
        (void)close(agent.fd);
    for (;;) {
        char byte = 0;
        int client = accept4(agent.listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            continue;
        ssize_t n = read(client, &byte, 1);
        if (n == 1 && byte == 'p') {
            (void)pthread_mutex_lock(&life_lock);
            (void)unlink(agent.path);
            (void)close(agent.listener);
            (void)close(client);
            agent_runs = 0;
            (void)pthread_mutex_unlock(&life_lock);
            return NULL;
        }
        (void)close(client);
    }
}

static int agent_listen(void) {
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    char dir[64];
    (void)snprintf(dir, sizeof dir, "/tmp/probing-%u", (unsigned)geteuid());
    (void)mkdir(dir, 0700);
    (void)snprintf(agent.path, sizeof agent.path, "%s/%d.sock", dir, (int)getpid());
    memcpy(sa.sun_path, agent.path, sizeof agent.path);
    (void)unlink(agent.path);
    agent.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (agent.listener < 0 || bind(agent.listener, (struct sockaddr *)&sa, sizeof sa) != 0)
        return -1;
    return listen(agent.listener, 8);
}

/* Under the lock. */
static int life_begin(struct agent_start *start) {
    pthread_t thread;
    pthread_attr_t attr;
    agent.starter = (pthread_t)start->thread;
    agent.region = (void *)start->region;
    agent.region_size = start->region_size;
    agent.fd = start->fd;
    if (agent_listen() != 0) {
        (void)snprintf(start->error, sizeof start->error, "cannot listen");
        return AGENT_FAILED;
    }
    (void)snprintf(start->endpoint, sizeof start->endpoint, "%s", agent.path);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, 256 * 1024);
    int rc = pthread_create(&thread, &attr, agent_serve, NULL);
    (void)pthread_attr_destroy(&attr);
    if (rc != 0) {
        (void)close(agent.listener);
        (void)unlink(agent.path);
        (void)snprintf(start->error, sizeof start->error, "cannot create a thread");
        return AGENT_FAILED;
    }
    agent_runs = 1;
    return AGENT_STARTED;
}

EXPORTED int probing_start(struct agent_start *start) {
#ifdef AGENT_TEST_FAILS
    (void)snprintf(start->error, sizeof start->error, "the test says no");
    return AGENT_FAILED;
#endif
#ifdef AGENT_TEST_SLOW
    (void)sleep(AGENT_TEST_SLOW);
#endif
    (void)pthread_mutex_lock(&life_lock);
    int result = agent_runs ? AGENT_ALREADY : life_begin(start);
    if (result == AGENT_ALREADY)
        (void)snprintf(start->endpoint, sizeof start->endpoint, "%s", agent.path);
    (void)pthread_mutex_unlock(&life_lock);
    return result;
}
#endif
