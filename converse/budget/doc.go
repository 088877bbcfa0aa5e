// SPDX-License-Identifier: Apache-2.0

// Package budget keeps conversations within what they may spend: tokens, money
// and time, for each conversation, each identity and all together.
//
// A [Policy] has [Cap]s, such as a million tokens a day for each identity, and
// [Price]s, by which tokens become money. Each cap has accounts in a [Ledger]:
// one for each that it holds for, and for each day if it is one of days.
//
// Before the model is asked, what the answer may cost at most is reserved, on
// all accounts together or on none. What is left bounds the length of the answer;
// where too little is left there is an error that names the cap, a
// [*ReachedError]. After the answer the reservation is settled: what was spent
// takes its place. So those who work side by side, in one process or in many
// that share a ledger, cannot spend the same money twice. What a process had
// reserved that died counts as spent, until somebody takes the exchange up
// again: the same reservation then is made again, and counts once.
//
// Of a call's own time and that of an answer, an allowance is reserved, which ends
// what lasts longer.
//
// A conversation does all of this by itself when [Policy] is in its
// converse.Options. [NewMemory] keeps a ledger in memory; the stores below
// converse/history keep theirs beside the conversations. Who writes one of their
// own runs budgettest.TestLedger over it.
//
// Nothing is a floating-point number: money is counted in millionths of its
// unit, and what a sum is short of one is rounded up.
package budget
