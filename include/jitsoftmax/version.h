/**
 * @file
 * The version of these headers. jitsoftmax_version() (jitsoftmax.h) tells that of the library that runs.
 */
#ifndef JITSOFTMAX_VERSION_H
#define JITSOFTMAX_VERSION_H

/* The one place where the version is written: CMake reads these lines. Below 1.0 the minor number is raised when
 * something that was there changes; it is part of the shared library's SONAME then. */
#define JITSOFTMAX_VERSION_MAJOR 0 /**< Raised when something is removed or changes. */
#define JITSOFTMAX_VERSION_MINOR 1 /**< Raised when something is added. */
#define JITSOFTMAX_VERSION_PATCH 0 /**< Raised otherwise. */
#define JITSOFTMAX_VERSION "0.1.0" /**< The three, with dots between them. */

#endif
