// SPDX-License-Identifier: Apache-2.0

//go:build linux

package reliability_test

import . "github.com/consort-go/consort/ensemble/ensembletest/faultserver"

// cells returns the matrix: what is promised of every fault, over every
// transport that has it, at every moment at which it can strike.
//
// Two codes stand where a server that comes back within the first attempt to
// connect may be asked again in the same turn or in a later one.
func cells() []cell {
	return []cell{
		{Die, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{Die, Stdio, idle, BetweenCalls, outcome{ok, "1", "", fresh, atOnce}},
		{Die, Stdio, inCall, BeforeEffect, outcome{"OUTCOME_UNKNOWN", "0", "", fresh, atOnce}},
		{Die, Stdio, inCall, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "", fresh, atOnce}},
		{Die, Stdio, parallel, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "OUTCOME_UNKNOWN", fresh, atOnce}},
		{Die, HTTP, connecting, AtInitialize, outcome{"OK or TOOL_NOT_FOUND", "0 or 1", "", kept, soon}},
		{Die, HTTP, idle, BetweenCalls, outcome{ok, "1", "", fresh, atOnce}},
		{Die, HTTP, inCall, BeforeEffect, outcome{"OUTCOME_UNKNOWN", "0", "", fresh, soon}},
		{Die, HTTP, inCall, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "", fresh, soon}},
		{Die, HTTP, parallel, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "OUTCOME_UNKNOWN", fresh, soon}},

		{Silence, Stdio, connecting, AtInitialize, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{Silence, Stdio, inCall, BeforeEffect, outcome{"TIMEOUT", "0", "", kept, atOnce}},
		{Silence, Stdio, inCall, AfterEffect, outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{Silence, Stdio, parallel, AfterEffect, outcome{"TIMEOUT", "1", ok, kept, atOnce}},
		{Silence, HTTP, connecting, AtInitialize, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{Silence, HTTP, inCall, BeforeEffect, outcome{"TIMEOUT", "0", "", kept, atOnce}},
		{Silence, HTTP, inCall, AfterEffect, outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{Silence, HTTP, parallel, AfterEffect, outcome{"TIMEOUT", "1", ok, kept, atOnce}},

		{Slow, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{Slow, Stdio, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{Slow, Stdio, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{Slow, Stdio, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},
		{Slow, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{Slow, HTTP, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{Slow, HTTP, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{Slow, HTTP, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},

		{FloodStderr, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{FloodStderr, Stdio, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{FloodStderr, Stdio, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{FloodStderr, Stdio, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{FloodStderr, Stdio, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},

		{IgnoreTerm, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{IgnoreTerm, Stdio, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{IgnoreTerm, Stdio, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{IgnoreTerm, Stdio, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{IgnoreTerm, Stdio, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},

		{StopReading, Stdio, connecting, AtInitialize, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{StopReading, Stdio, idle, BetweenCalls, outcome{ok, "1", "", fresh, atOnce}},
		{StopReading, Stdio, inCall, BeforeEffect, outcome{ok, "1", "", fresh, soon}},
		{StopReading, Stdio, inCall, AfterEffect, outcome{ok, "1", "", fresh, soon}},
		{StopReading, Stdio, parallel, AfterEffect, outcome{ok, "1", "TIMEOUT", fresh, soon}},

		{LeaveChild, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{LeaveChild, Stdio, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{LeaveChild, Stdio, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{LeaveChild, Stdio, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{LeaveChild, Stdio, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},

		{LeaveChildHoldingPipes, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{LeaveChildHoldingPipes, Stdio, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{LeaveChildHoldingPipes, Stdio, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{LeaveChildHoldingPipes, Stdio, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{LeaveChildHoldingPipes, Stdio, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},

		{AnswerTwice, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{AnswerTwice, Stdio, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{AnswerTwice, Stdio, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},
		{AnswerTwice, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{AnswerTwice, HTTP, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{AnswerTwice, HTTP, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},

		{AnswerLate, Stdio, inCall, BeforeEffect, outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{AnswerLate, Stdio, inCall, AfterEffect, outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{AnswerLate, Stdio, parallel, AfterEffect, outcome{"TIMEOUT", "1", ok, kept, atOnce}},
		{AnswerLate, HTTP, inCall, BeforeEffect, outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{AnswerLate, HTTP, inCall, AfterEffect, outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{AnswerLate, HTTP, parallel, AfterEffect, outcome{"TIMEOUT", "1", ok, kept, atOnce}},

		{WrongID, Stdio, connecting, AtInitialize, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{WrongID, Stdio, inCall, AfterEffect, outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{WrongID, Stdio, parallel, AfterEffect, outcome{"TIMEOUT", "1", ok, kept, atOnce}},
		{WrongID, HTTP, connecting, AtInitialize, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{WrongID, HTTP, inCall, AfterEffect, outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{WrongID, HTTP, parallel, AfterEffect, outcome{"TIMEOUT", "1", ok, kept, atOnce}},

		{BrokenJSON, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{BrokenJSON, Stdio, inCall, AfterEffect, outcome{"PROTOCOL", "1", "", kept, atOnce}},
		{BrokenJSON, Stdio, parallel, AfterEffect, outcome{"PROTOCOL", "1", ok, kept, atOnce}},
		{BrokenJSON, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{BrokenJSON, HTTP, inCall, AfterEffect, outcome{"PROTOCOL", "1", "", kept, atOnce}},
		{BrokenJSON, HTTP, parallel, AfterEffect, outcome{"PROTOCOL", "1", ok, kept, atOnce}},

		{HalfThenDie, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{HalfThenDie, Stdio, inCall, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "", fresh, atOnce}},
		{HalfThenDie, Stdio, parallel, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "OUTCOME_UNKNOWN", fresh, atOnce}},
		{HalfThenDie, HTTP, connecting, AtInitialize, outcome{"OK or TOOL_NOT_FOUND", "0 or 1", "", kept, soon}},
		{HalfThenDie, HTTP, inCall, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "", fresh, soon}},
		{HalfThenDie, HTTP, parallel, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "OUTCOME_UNKNOWN", fresh, soon}},

		{HalfThenSilence, Stdio, connecting, AtInitialize, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{HalfThenSilence, Stdio, inCall, AfterEffect, outcome{"TIMEOUT", "1", "", fresh, soon}},
		{HalfThenSilence, Stdio, parallel, AfterEffect, outcome{"TIMEOUT", "1", "TIMEOUT", fresh, soon}},
		{HalfThenSilence, HTTP, connecting, AtInitialize, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{HalfThenSilence, HTTP, inCall, AfterEffect, outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{HalfThenSilence, HTTP, parallel, AfterEffect, outcome{"TIMEOUT", "1", ok, kept, atOnce}},

		{Junk, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{Junk, Stdio, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{Junk, Stdio, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{Junk, Stdio, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{Junk, Stdio, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},
		{Junk, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{Junk, HTTP, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{Junk, HTTP, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{Junk, HTTP, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{Junk, HTTP, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},

		{FloodStdout, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{FloodStdout, Stdio, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{FloodStdout, Stdio, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{FloodStdout, Stdio, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{FloodStdout, Stdio, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},
		{FloodStdout, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{FloodStdout, HTTP, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{FloodStdout, HTTP, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{FloodStdout, HTTP, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{FloodStdout, HTTP, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},

		{EndlessLine, Stdio, connecting, AtInitialize, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{EndlessLine, Stdio, idle, BetweenCalls, outcome{ok, "1", "", fresh, atOnce}},
		{EndlessLine, Stdio, inCall, BeforeEffect, outcome{"TIMEOUT", "0", "", fresh, soon}},
		{EndlessLine, Stdio, inCall, AfterEffect, outcome{"TIMEOUT", "1", "", fresh, soon}},
		{EndlessLine, Stdio, parallel, AfterEffect, outcome{"TIMEOUT", "1", "TIMEOUT", fresh, soon}},
		{EndlessLine, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{EndlessLine, HTTP, idle, BetweenCalls, outcome{ok, "1", "", fresh, atOnce}},
		{EndlessLine, HTTP, inCall, BeforeEffect, outcome{"RESULT_TOO_LARGE", "0", "", kept, atOnce}},
		{EndlessLine, HTTP, inCall, AfterEffect, outcome{"RESULT_TOO_LARGE", "1", "", kept, atOnce}},
		{EndlessLine, HTTP, parallel, AfterEffect, outcome{"RESULT_TOO_LARGE", "1", ok, kept, atOnce}},

		{ListChangedStorm, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{ListChangedStorm, Stdio, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{ListChangedStorm, Stdio, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{ListChangedStorm, Stdio, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{ListChangedStorm, Stdio, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},
		{ListChangedStorm, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{ListChangedStorm, HTTP, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{ListChangedStorm, HTTP, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{ListChangedStorm, HTTP, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{ListChangedStorm, HTTP, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},

		{ProgressStorm, Stdio, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{ProgressStorm, Stdio, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{ProgressStorm, Stdio, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},
		{ProgressStorm, HTTP, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{ProgressStorm, HTTP, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{ProgressStorm, HTTP, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},

		{LogStorm, Stdio, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{LogStorm, Stdio, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{LogStorm, Stdio, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{LogStorm, Stdio, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{LogStorm, Stdio, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},
		{LogStorm, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{LogStorm, HTTP, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{LogStorm, HTTP, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{LogStorm, HTTP, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{LogStorm, HTTP, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},

		{HugeSchema, Stdio, connecting, AtList, outcome{ok, "1", "", kept, atOnce}},
		{HugeSchema, HTTP, connecting, AtList, outcome{ok, "1", "", kept, atOnce}},

		{DeepSchema, Stdio, connecting, AtList, outcome{ok, "1", "", kept, atOnce}},
		{DeepSchema, HTTP, connecting, AtList, outcome{ok, "1", "", kept, atOnce}},

		{ManyTools, Stdio, connecting, AtList, outcome{ok, "1", "", kept, atOnce}},
		{ManyTools, HTTP, connecting, AtList, outcome{ok, "1", "", kept, atOnce}},

		{EndlessPages, Stdio, connecting, AtList, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{EndlessPages, HTTP, connecting, AtList, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},

		{CursorLoop, Stdio, connecting, AtList, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{CursorLoop, HTTP, connecting, AtList, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},

		{HugeResult, Stdio, inCall, AfterEffect, outcome{"RESULT_TOO_LARGE", "1", "", fresh, atOnce}},
		{HugeResult, Stdio, parallel, AfterEffect, outcome{"RESULT_TOO_LARGE", "1", "RESULT_TOO_LARGE", fresh, atOnce}},
		{HugeResult, HTTP, inCall, AfterEffect, outcome{"RESULT_TOO_LARGE", "1", "", kept, atOnce}},
		{HugeResult, HTTP, parallel, AfterEffect, outcome{"RESULT_TOO_LARGE", "1", ok, kept, atOnce}},

		{DeepResult, Stdio, inCall, AfterEffect, outcome{"PROTOCOL", "1", "", kept, atOnce}},
		{DeepResult, Stdio, parallel, AfterEffect, outcome{"PROTOCOL", "1", ok, kept, atOnce}},
		{DeepResult, HTTP, inCall, AfterEffect, outcome{"PROTOCOL", "1", "", kept, atOnce}},
		{DeepResult, HTTP, parallel, AfterEffect, outcome{"PROTOCOL", "1", ok, kept, atOnce}},

		{UnknownContent, Stdio, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{UnknownContent, Stdio, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},
		{UnknownContent, HTTP, inCall, AfterEffect, outcome{ok, "1", "", kept, atOnce}},
		{UnknownContent, HTTP, parallel, AfterEffect, outcome{ok, "1", ok, kept, atOnce}},

		{ExpireSession, HTTP, connecting, AtList, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{ExpireSession, HTTP, idle, BetweenCalls, outcome{ok, "1", "", fresh, atOnce}},
		{ExpireSession, HTTP, inCall, BeforeEffect, outcome{"OUTCOME_UNKNOWN", "0", "", fresh, atOnce}},
		{ExpireSession, HTTP, inCall, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "", fresh, atOnce}},
		{ExpireSession, HTTP, parallel, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "OUTCOME_UNKNOWN", fresh, atOnce}},

		{DropStream, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{DropStream, HTTP, idle, BetweenCalls, outcome{ok, "1", "", kept, atOnce}},
		{DropStream, HTTP, inCall, BeforeEffect, outcome{"OUTCOME_UNKNOWN", "0", "", kept, atOnce}},
		{DropStream, HTTP, inCall, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "", kept, atOnce}},
		{DropStream, HTTP, parallel, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", ok, kept, atOnce}},

		{Unauthorized, HTTP, connecting, AtInitialize, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{Unauthorized, HTTP, inCall, BeforeEffect, outcome{"UNAUTHORIZED", "0", "", kept, atOnce}},
		{Unauthorized, HTTP, inCall, AfterEffect, outcome{"UNAUTHORIZED", "1", "", kept, atOnce}},
		{Unauthorized, HTTP, parallel, AfterEffect, outcome{"UNAUTHORIZED", "1", ok, kept, atOnce}},

		{Forbidden, HTTP, connecting, AtInitialize, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{Forbidden, HTTP, inCall, BeforeEffect, outcome{"UNAUTHORIZED", "0", "", kept, atOnce}},
		{Forbidden, HTTP, inCall, AfterEffect, outcome{"UNAUTHORIZED", "1", "", kept, atOnce}},
		{Forbidden, HTTP, parallel, AfterEffect, outcome{"UNAUTHORIZED", "1", ok, kept, atOnce}},

		{NotFound, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{NotFound, HTTP, inCall, BeforeEffect, outcome{"OUTCOME_UNKNOWN", "0", "", fresh, atOnce}},
		{NotFound, HTTP, inCall, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "", fresh, atOnce}},
		{NotFound, HTTP, parallel, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "OUTCOME_UNKNOWN", fresh, atOnce}},

		{TooManyRequests, HTTP, connecting, AtInitialize, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{TooManyRequests, HTTP, inCall, BeforeEffect, outcome{"UNAVAILABLE", "0", "", kept, atOnce}},
		{TooManyRequests, HTTP, inCall, AfterEffect, outcome{"UNAVAILABLE", "1", "", kept, atOnce}},
		{TooManyRequests, HTTP, parallel, AfterEffect, outcome{"UNAVAILABLE", "1", ok, kept, atOnce}},

		{InternalError, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{InternalError, HTTP, inCall, BeforeEffect, outcome{"OUTCOME_UNKNOWN", "0", "", kept, atOnce}},
		{InternalError, HTTP, inCall, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", "", kept, atOnce}},
		{InternalError, HTTP, parallel, AfterEffect, outcome{"OUTCOME_UNKNOWN", "1", ok, kept, atOnce}},

		{Unavailable, HTTP, connecting, AtInitialize, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{Unavailable, HTTP, inCall, BeforeEffect, outcome{"UNAVAILABLE", "0", "", kept, atOnce}},
		{Unavailable, HTTP, inCall, AfterEffect, outcome{"UNAVAILABLE", "1", "", kept, atOnce}},
		{Unavailable, HTTP, parallel, AfterEffect, outcome{"UNAVAILABLE", "1", ok, kept, atOnce}},

		{RedirectSameHost, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{RedirectSameHost, HTTP, inCall, BeforeEffect, outcome{ok, "1", "", kept, atOnce}},
		{RedirectSameHost, HTTP, inCall, AfterEffect, outcome{ok, "2", "", kept, atOnce}},
		{RedirectSameHost, HTTP, parallel, AfterEffect, outcome{ok, "2", ok, kept, atOnce}},

		{RedirectOtherHost, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{RedirectOtherHost, HTTP, inCall, BeforeEffect, outcome{"PROTOCOL", "0", "", kept, atOnce}},
		{RedirectOtherHost, HTTP, inCall, AfterEffect, outcome{"PROTOCOL", "1", "", kept, atOnce}},
		{RedirectOtherHost, HTTP, parallel, AfterEffect, outcome{"PROTOCOL", "1", ok, kept, atOnce}},

		{HTML, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{HTML, HTTP, inCall, BeforeEffect, outcome{"PROTOCOL", "0", "", kept, atOnce}},
		{HTML, HTTP, inCall, AfterEffect, outcome{"PROTOCOL", "1", "", kept, atOnce}},
		{HTML, HTTP, parallel, AfterEffect, outcome{"PROTOCOL", "1", ok, kept, atOnce}},

		{WrongContentType, HTTP, connecting, AtInitialize, outcome{ok, "1", "", kept, atOnce}},
		{WrongContentType, HTTP, inCall, AfterEffect, outcome{"PROTOCOL", "1", "", kept, atOnce}},
		{WrongContentType, HTTP, parallel, AfterEffect, outcome{"PROTOCOL", "1", ok, kept, atOnce}},

		{SelfSigned, HTTP, connecting, AtStart, outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
	}
}
