// SPDX-License-Identifier: Apache-2.0

//go:build linux

package reliability_test

// cells returns the matrix: the promise for every fault, over every transport that has
// it, at every moment at which it can occur.
//
// Two codes stand where a server that recovers within the first attempt to connect may be
// asked again in the same turn or in a later one.
func cells() []cell {
	return []cell{
		{"die", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"die", overStdio, idle, "between-calls", outcome{ok, "1", "", fresh, atOnce}},
		{"die", overStdio, inCall, "before-effect", outcome{"OUTCOME_UNKNOWN", "0", "", fresh, atOnce}},
		{"die", overStdio, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", fresh, atOnce}},
		{"die", overStdio, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "OUTCOME_UNKNOWN", fresh, atOnce}},
		{"die", overHTTP, connecting, "initialize", outcome{"OK or TOOL_NOT_FOUND", "0 or 1", "", kept, soon}},
		{"die", overHTTP, idle, "between-calls", outcome{ok, "1", "", fresh, atOnce}},
		{"die", overHTTP, inCall, "before-effect", outcome{"OUTCOME_UNKNOWN", "0", "", fresh, soon}},
		{"die", overHTTP, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", fresh, soon}},
		{"die", overHTTP, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "OUTCOME_UNKNOWN", fresh, soon}},

		{"silence", overStdio, connecting, "initialize", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"silence", overStdio, inCall, "before-effect", outcome{"TIMEOUT", "0", "", kept, atOnce}},
		{"silence", overStdio, inCall, "after-effect", outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{"silence", overStdio, parallel, "after-effect", outcome{"TIMEOUT", "1", ok, kept, atOnce}},
		{"silence", overHTTP, connecting, "initialize", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"silence", overHTTP, inCall, "before-effect", outcome{"TIMEOUT", "0", "", kept, atOnce}},
		{"silence", overHTTP, inCall, "after-effect", outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{"silence", overHTTP, parallel, "after-effect", outcome{"TIMEOUT", "1", ok, kept, atOnce}},

		{"slow", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"slow", overStdio, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"slow", overStdio, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"slow", overStdio, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},
		{"slow", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"slow", overHTTP, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"slow", overHTTP, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"slow", overHTTP, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},

		{"flood-stderr", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"flood-stderr", overStdio, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"flood-stderr", overStdio, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"flood-stderr", overStdio, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"flood-stderr", overStdio, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},

		{"ignore-term", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"ignore-term", overStdio, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"ignore-term", overStdio, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"ignore-term", overStdio, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"ignore-term", overStdio, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},

		{"stop-reading", overStdio, connecting, "initialize", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"stop-reading", overStdio, idle, "between-calls", outcome{ok, "1", "", fresh, atOnce}},
		{"stop-reading", overStdio, inCall, "before-effect", outcome{ok, "1", "", fresh, soon}},
		{"stop-reading", overStdio, inCall, "after-effect", outcome{ok, "1", "", fresh, soon}},
		{"stop-reading", overStdio, parallel, "after-effect", outcome{ok, "1", "TIMEOUT", fresh, soon}},

		{"leave-child", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"leave-child", overStdio, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"leave-child", overStdio, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"leave-child", overStdio, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"leave-child", overStdio, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},

		{"leave-child-holding-pipes", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"leave-child-holding-pipes", overStdio, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"leave-child-holding-pipes", overStdio, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"leave-child-holding-pipes", overStdio, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"leave-child-holding-pipes", overStdio, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},

		{"answer-twice", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"answer-twice", overStdio, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"answer-twice", overStdio, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},
		{"answer-twice", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"answer-twice", overHTTP, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"answer-twice", overHTTP, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},

		{"answer-late", overStdio, inCall, "before-effect", outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{"answer-late", overStdio, inCall, "after-effect", outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{"answer-late", overStdio, parallel, "after-effect", outcome{"TIMEOUT", "1", ok, kept, atOnce}},
		{"answer-late", overHTTP, inCall, "before-effect", outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{"answer-late", overHTTP, inCall, "after-effect", outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{"answer-late", overHTTP, parallel, "after-effect", outcome{"TIMEOUT", "1", ok, kept, atOnce}},

		{"wrong-id", overStdio, connecting, "initialize", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"wrong-id", overStdio, inCall, "after-effect", outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{"wrong-id", overStdio, parallel, "after-effect", outcome{"TIMEOUT", "1", ok, kept, atOnce}},
		{"wrong-id", overHTTP, connecting, "initialize", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"wrong-id", overHTTP, inCall, "after-effect", outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{"wrong-id", overHTTP, parallel, "after-effect", outcome{"TIMEOUT", "1", ok, kept, atOnce}},

		{"broken-json", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"broken-json", overStdio, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", kept, atOnce}},
		{"broken-json", overStdio, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", ok, kept, atOnce}},
		{"broken-json", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"broken-json", overHTTP, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", kept, atOnce}},
		{"broken-json", overHTTP, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", ok, kept, atOnce}},

		{"half-then-die", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"half-then-die", overStdio, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", fresh, atOnce}},
		{"half-then-die", overStdio, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "OUTCOME_UNKNOWN", fresh, atOnce}},
		{"half-then-die", overHTTP, connecting, "initialize", outcome{"OK or TOOL_NOT_FOUND", "0 or 1", "", kept, soon}},
		{"half-then-die", overHTTP, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", fresh, soon}},
		{"half-then-die", overHTTP, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "OUTCOME_UNKNOWN", fresh, soon}},

		{"half-then-silence", overStdio, connecting, "initialize", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"half-then-silence", overStdio, inCall, "after-effect", outcome{"TIMEOUT", "1", "", fresh, soon}},
		{"half-then-silence", overStdio, parallel, "after-effect", outcome{"TIMEOUT", "1", "TIMEOUT", fresh, soon}},
		{"half-then-silence", overHTTP, connecting, "initialize", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"half-then-silence", overHTTP, inCall, "after-effect", outcome{"TIMEOUT", "1", "", kept, atOnce}},
		{"half-then-silence", overHTTP, parallel, "after-effect", outcome{"TIMEOUT", "1", ok, kept, atOnce}},

		{"junk", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"junk", overStdio, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"junk", overStdio, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"junk", overStdio, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"junk", overStdio, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},
		{"junk", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"junk", overHTTP, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"junk", overHTTP, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"junk", overHTTP, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"junk", overHTTP, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},

		{"flood-stdout", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"flood-stdout", overStdio, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"flood-stdout", overStdio, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"flood-stdout", overStdio, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"flood-stdout", overStdio, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},
		{"flood-stdout", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"flood-stdout", overHTTP, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"flood-stdout", overHTTP, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"flood-stdout", overHTTP, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"flood-stdout", overHTTP, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},

		{"endless-line", overStdio, connecting, "initialize", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"endless-line", overStdio, idle, "between-calls", outcome{ok, "1", "", fresh, atOnce}},
		{"endless-line", overStdio, inCall, "before-effect", outcome{"TIMEOUT", "0", "", fresh, soon}},
		{"endless-line", overStdio, inCall, "after-effect", outcome{"TIMEOUT", "1", "", fresh, soon}},
		{"endless-line", overStdio, parallel, "after-effect", outcome{"TIMEOUT", "1", "TIMEOUT", fresh, soon}},
		{"endless-line", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"endless-line", overHTTP, idle, "between-calls", outcome{ok, "1", "", fresh, atOnce}},
		{"endless-line", overHTTP, inCall, "before-effect", outcome{"RESULT_TOO_LARGE", "0", "", kept, atOnce}},
		{"endless-line", overHTTP, inCall, "after-effect", outcome{"RESULT_TOO_LARGE", "1", "", kept, atOnce}},
		{"endless-line", overHTTP, parallel, "after-effect", outcome{"RESULT_TOO_LARGE", "1", ok, kept, atOnce}},

		{"list-changed-storm", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"list-changed-storm", overStdio, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"list-changed-storm", overStdio, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"list-changed-storm", overStdio, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"list-changed-storm", overStdio, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},
		{"list-changed-storm", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"list-changed-storm", overHTTP, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"list-changed-storm", overHTTP, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"list-changed-storm", overHTTP, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"list-changed-storm", overHTTP, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},

		{"progress-storm", overStdio, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"progress-storm", overStdio, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"progress-storm", overStdio, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},
		{"progress-storm", overHTTP, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"progress-storm", overHTTP, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"progress-storm", overHTTP, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},

		{"log-storm", overStdio, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"log-storm", overStdio, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"log-storm", overStdio, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"log-storm", overStdio, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"log-storm", overStdio, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},
		{"log-storm", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"log-storm", overHTTP, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"log-storm", overHTTP, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"log-storm", overHTTP, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"log-storm", overHTTP, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},

		{"huge-schema", overStdio, connecting, "list", outcome{ok, "1", "", kept, atOnce}},
		{"huge-schema", overHTTP, connecting, "list", outcome{ok, "1", "", kept, atOnce}},

		{"deep-schema", overStdio, connecting, "list", outcome{ok, "1", "", kept, atOnce}},
		{"deep-schema", overHTTP, connecting, "list", outcome{ok, "1", "", kept, atOnce}},

		{"many-tools", overStdio, connecting, "list", outcome{ok, "1", "", kept, atOnce}},
		{"many-tools", overHTTP, connecting, "list", outcome{ok, "1", "", kept, atOnce}},

		{"endless-pages", overStdio, connecting, "list", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"endless-pages", overHTTP, connecting, "list", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},

		{"cursor-loop", overStdio, connecting, "list", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"cursor-loop", overHTTP, connecting, "list", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},

		{"huge-result", overStdio, inCall, "after-effect", outcome{"RESULT_TOO_LARGE", "1", "", fresh, atOnce}},
		{"huge-result", overStdio, parallel, "after-effect", outcome{"RESULT_TOO_LARGE", "1", "RESULT_TOO_LARGE", fresh, atOnce}},
		{"huge-result", overHTTP, inCall, "after-effect", outcome{"RESULT_TOO_LARGE", "1", "", kept, atOnce}},
		{"huge-result", overHTTP, parallel, "after-effect", outcome{"RESULT_TOO_LARGE", "1", ok, kept, atOnce}},

		{"deep-result", overStdio, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", kept, atOnce}},
		{"deep-result", overStdio, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", ok, kept, atOnce}},
		{"deep-result", overHTTP, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", kept, atOnce}},
		{"deep-result", overHTTP, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", ok, kept, atOnce}},

		{"unknown-content", overStdio, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"unknown-content", overStdio, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},
		{"unknown-content", overHTTP, inCall, "after-effect", outcome{ok, "1", "", kept, atOnce}},
		{"unknown-content", overHTTP, parallel, "after-effect", outcome{ok, "1", ok, kept, atOnce}},

		{"expire-session", overHTTP, connecting, "list", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"expire-session", overHTTP, idle, "between-calls", outcome{ok, "1", "", fresh, atOnce}},
		{"expire-session", overHTTP, inCall, "before-effect", outcome{"OUTCOME_UNKNOWN", "0", "", fresh, atOnce}},
		{"expire-session", overHTTP, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", fresh, atOnce}},
		{"expire-session", overHTTP, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "OUTCOME_UNKNOWN", fresh, atOnce}},

		{"drop-stream", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"drop-stream", overHTTP, idle, "between-calls", outcome{ok, "1", "", kept, atOnce}},
		{"drop-stream", overHTTP, inCall, "before-effect", outcome{"OUTCOME_UNKNOWN", "0", "", kept, atOnce}},
		{"drop-stream", overHTTP, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", kept, atOnce}},
		{"drop-stream", overHTTP, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", ok, kept, atOnce}},

		{"unauthorized", overHTTP, connecting, "initialize", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"unauthorized", overHTTP, inCall, "before-effect", outcome{"UNAUTHORIZED", "0", "", kept, atOnce}},
		{"unauthorized", overHTTP, inCall, "after-effect", outcome{"UNAUTHORIZED", "1", "", kept, atOnce}},
		{"unauthorized", overHTTP, parallel, "after-effect", outcome{"UNAUTHORIZED", "1", ok, kept, atOnce}},

		{"forbidden", overHTTP, connecting, "initialize", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"forbidden", overHTTP, inCall, "before-effect", outcome{"UNAUTHORIZED", "0", "", kept, atOnce}},
		{"forbidden", overHTTP, inCall, "after-effect", outcome{"UNAUTHORIZED", "1", "", kept, atOnce}},
		{"forbidden", overHTTP, parallel, "after-effect", outcome{"UNAUTHORIZED", "1", ok, kept, atOnce}},

		{"not-found", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"not-found", overHTTP, inCall, "before-effect", outcome{"OUTCOME_UNKNOWN", "0", "", fresh, atOnce}},
		{"not-found", overHTTP, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", fresh, atOnce}},
		{"not-found", overHTTP, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "OUTCOME_UNKNOWN", fresh, atOnce}},

		{"too-many-requests", overHTTP, connecting, "initialize", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"too-many-requests", overHTTP, inCall, "before-effect", outcome{"UNAVAILABLE", "0", "", kept, atOnce}},
		{"too-many-requests", overHTTP, inCall, "after-effect", outcome{"UNAVAILABLE", "1", "", kept, atOnce}},
		{"too-many-requests", overHTTP, parallel, "after-effect", outcome{"UNAVAILABLE", "1", ok, kept, atOnce}},

		{"internal-error", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"internal-error", overHTTP, inCall, "before-effect", outcome{"OUTCOME_UNKNOWN", "0", "", kept, atOnce}},
		{"internal-error", overHTTP, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", kept, atOnce}},
		{"internal-error", overHTTP, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", ok, kept, atOnce}},

		{"unavailable", overHTTP, connecting, "initialize", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
		{"unavailable", overHTTP, inCall, "before-effect", outcome{"UNAVAILABLE", "0", "", kept, atOnce}},
		{"unavailable", overHTTP, inCall, "after-effect", outcome{"UNAVAILABLE", "1", "", kept, atOnce}},
		{"unavailable", overHTTP, parallel, "after-effect", outcome{"UNAVAILABLE", "1", ok, kept, atOnce}},

		{"redirect-same-host", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"redirect-same-host", overHTTP, inCall, "before-effect", outcome{ok, "1", "", kept, atOnce}},
		{"redirect-same-host", overHTTP, inCall, "after-effect", outcome{ok, "2", "", kept, atOnce}},
		{"redirect-same-host", overHTTP, parallel, "after-effect", outcome{ok, "2", ok, kept, atOnce}},

		{"redirect-other-host", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"redirect-other-host", overHTTP, inCall, "before-effect", outcome{"PROTOCOL", "0", "", kept, atOnce}},
		{"redirect-other-host", overHTTP, inCall, "after-effect", outcome{"PROTOCOL", "1", "", kept, atOnce}},
		{"redirect-other-host", overHTTP, parallel, "after-effect", outcome{"PROTOCOL", "1", ok, kept, atOnce}},

		{"html", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"html", overHTTP, inCall, "before-effect", outcome{"OUTCOME_UNKNOWN", "0", "", kept, atOnce}},
		{"html", overHTTP, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", kept, atOnce}},
		{"html", overHTTP, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", ok, kept, atOnce}},

		{"wrong-content-type", overHTTP, connecting, "initialize", outcome{ok, "1", "", kept, atOnce}},
		{"wrong-content-type", overHTTP, inCall, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", "", kept, atOnce}},
		{"wrong-content-type", overHTTP, parallel, "after-effect", outcome{"OUTCOME_UNKNOWN", "1", ok, kept, atOnce}},

		{"self-signed", overHTTP, connecting, "start", outcome{"TOOL_NOT_FOUND", "0", "", kept, soon}},
	}
}
