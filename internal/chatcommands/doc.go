// SPDX-License-Identifier: Apache-2.0

// Package chatcommands has the commands of consort chat that begin with a slash. [All]
// lists them with their help and what completes their arguments. [Chat.Run] runs one.
//
// Commands change no stored canister. /retry, /edit and /fork continue in a copy with an
// ID of its own, so that its calls have idempotency keys of their own.
package chatcommands
