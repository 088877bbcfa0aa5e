// SPDX-License-Identifier: Apache-2.0

// Package clientcalls decides whether the calls of served clients run: it asks for the
// approvals that rules demand, and counts calls against budgets.
//
// An approval is a conversation of its own in the conversation store, with the client as
// owner. Its identity is computed from the client, the server, the tool with its
// definition, and the arguments, so that the same call finds it again after a restart.
// Its log has the call, the wait for an answer, the answer, an intent before the call is
// made, and its outcome. The intent uses the answer up: two processes cannot both append
// it, because an append names the length that it expects.
package clientcalls
