// SPDX-License-Identifier: Apache-2.0

// Package budget limits the tokens, money and time that conversations may spend, for
// each conversation, for each identity, and for all together.
//
// A [Policy] has [Cap]s, for example a million tokens a day for each identity, and
// [Price]s, which convert tokens to money. Each cap has accounts in a [Ledger]: one for
// each member of its scope, and for each day if its window is a day.
//
// Before each request to the model, the maximum cost of the answer is reserved, on all
// accounts or on none. The remaining budget bounds the length of the answer; if too
// little is left, the result is a [*ReachedError] that names the cap. After the answer
// the reservation is settled: the amount spent replaces it. So concurrent work, in one
// process or in many that share a ledger, cannot spend the same money twice. If a
// process dies, its reservations count as spent, unless the exchange is resumed: a new
// reservation then replaces the old one, and counts once. If the old process is
// still alive, its settlement counts too.
//
// For the duration of a call or an answer, an allowance of time is reserved, and work
// that exceeds it is ended.
//
// A conversation does all of this by itself when [Policy] is in its converse.Options.
// [NewMemory] keeps a ledger in memory; the stores below converse/history keep ledgers
// in the same storage as conversations. Authors of other ledgers should run
// budgettest.TestLedger.
//
// The package uses no floating-point numbers: money is counted in millionths of its
// unit, and fractions of a millionth are rounded up.
package budget
