// SPDX-License-Identifier: Apache-2.0

// Package redact removes secrets from text that people and models see.
//
// [New] returns a function that removes the given secrets from a text:
//
//	clean := redact.New("hunter2-hunter2")
//	clean("the password is hunter2-hunter2") // the password is [secret]
//
// [JSON], [Error] and [Core] apply such a function to a JSON value, which stays
// valid, to an error, which keeps matching its chain, and to a log.
//
// # What is not found
//
// A secret is found if the text contains it verbatim, or as it is escaped in a
// URL or in a JSON or Go string, or as the base64 form of exactly the secret; in
// a text of up to 16 KiB, also if an ellipsis replaces the rest of it. Anything
// else is not found: another part of a secret, or a secret that is split,
// encrypted, compressed, written in capitals, or encoded in base64 together with
// other text. A secret of less than 8 bytes is not searched for, because it is
// likely to be a word of other texts; [Sent] searches for secrets from 6 bytes.
package redact
