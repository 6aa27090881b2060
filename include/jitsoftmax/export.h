/**
 * @file
 * What the shared library exports.
 */
#ifndef JITSOFTMAX_EXPORT_H
#define JITSOFTMAX_EXPORT_H

/** Marks what the shared library exports; everything else is hidden. */
#if defined(__GNUC__)
#define JITSOFTMAX_API __attribute__((visibility("default")))
#else
#define JITSOFTMAX_API
#endif

#endif
