// SPDX-License-Identifier: Apache-2.0

// Package audit keeps one record of every invocation: the requester, the tool,
// the identity that it acted for, the arguments and the outcome.
//
// A [Trail] applies the rules for what may be recorded and passes each record to
// a [Sink]. Conversations and MCP servers take one in their options:
//
//	file, err := audit.OpenFile("audit.jsonl", nil)
//	if err != nil {
//		return err
//	}
//	defer file.Close()
//	trail := audit.New(file, &audit.Options{
//		Identity: []string{"user_id"},           // trusted values that may be written
//		Omit:     []string{"password", "*_key"}, // arguments that may not
//	})
//	talk := converse.New(model, roster, &converse.Options{Audit: trail})
//
// # Contents of a record
//
// An invocation that was refused has a record like one that ran: [Record].Code
// distinguishes them, Error gives the reason, which the requester may not have
// seen, and Forged names the trusted values that the requester tried to set.
//
// A trusted value of a call is recorded only if the policy names it. A secret one
// is never recorded: it is also removed from arguments, errors and everything
// else.
//
// # Sinks
//
// A [File] has one line of JSON for each record. Its records survive a kill -9 of
// the process and, unless the options say otherwise, a power failure. It may be
// renamed or removed while it is open, as log rotation does. [Read] reads it
// back. [Zap] writes records to a log. Other destinations need only a few lines
// to implement Sink. The JSON form is the same everywhere: see docs/audit.md.
//
// If a record cannot be stored, its invocation is not undone: the trail logs an
// error with the record's IDs and the reason.
package audit
