// SPDX-License-Identifier: Apache-2.0

// Package agenttool offers conversations as a tool: to other conversations, or over MCP
// to other programs.
//
//	tool, err := agenttool.New(func(ctx context.Context, id string) (*converse.Conversation, error) {
//		return converse.New(model, roster, &converse.Options{ID: id}), nil
//	}, nil)
//
// Each call is one message to one conversation. The result has the answer and the
// ID of the conversation; send it with the next call to continue the
// conversation. A conversation belongs to the trusted values of the call that began it, or only to
// the ones in Options.Identity: a call with other values does not find it. Conversations
// are in memory unless open sets a Log; an idle one ends after 30 minutes, or Options.Idle.
// The caller must call [Tool.Close].
package agenttool
