// SPDX-License-Identifier: Apache-2.0

// Package audit keeps one record of every invocation: who asked for which tool
// on whose behalf, with what arguments, and what came of it.
//
// A [Trail] applies the rules of what may be written down and hands each
// record to a [Sink]. Conversations and MCP servers take one in their options:
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
// # What a record says
//
// An invocation that was refused has a record like one that ran: [Record].Code
// tells them apart, Error says why in words that the asker may not have been
// told, and Forged names the trusted values that the asker tried to choose.
//
// Of the trusted values that a call carries, none is recorded unless the
// policy names it, and a secret one is not recorded whatever the policy says:
// it is taken out of arguments, errors and everything else as well.
//
// # Where records go
//
// A [File] has one line of JSON for each record, and what was put into it is
// there after a kill -9 of the process and, unless the options say otherwise,
// after a power cut. It may be renamed or removed while it is open, as log
// rotation does. [Read] reads it back. [Zap] puts records into a log. Any
// other place is a Sink of a few lines. The JSON form is the same everywhere:
// see docs/audit.md.
//
// A record that cannot be kept does not undo its invocation: the trail logs
// the record's identities and why, as an error.
package audit
