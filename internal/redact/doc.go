// SPDX-License-Identifier: Apache-2.0

// Package redact takes secrets out of what people and models get to see.
//
// [New] makes a function from the secrets, and the function does it to a text:
//
//	clean := redact.New("hunter2-hunter2")
//	clean("the password is hunter2-hunter2") // the password is [secret]
//
// [JSON], [Error] and [Core] do the same to a JSON value that must stay one, to
// an error that must stay in its chain, and to a log.
//
// # What is not found
//
// A text holds a secret if it holds it letter by letter, or as it is written in
// a URL, in a JSON or Go string, or in base64 for itself; in a text of up to 16
// KiB, an ellipsis may stand for the rest of it. Anything else is not found:
// another part of a secret, a secret in pieces, encrypted, compressed, in
// capitals, or in base64 together with other text. A secret of less than 8
// bytes is not looked for, because it is likely to be a word of other texts;
// [Sent] looks for one of 6.
package redact
