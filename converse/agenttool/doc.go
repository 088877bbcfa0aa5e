// SPDX-License-Identifier: Apache-2.0

// Package agenttool offers conversations as a tool: to other conversations, or over MCP
// to other programs.
//
//	tool, err := agenttool.New(func(ctx context.Context, id string) (*converse.Conversation, error) {
//		return converse.New(model, roster, &converse.Options{ID: id}), nil
//	}, nil)
//
// Each call is one message to one conversation. The result has the answer and the
// identity of the conversation; send it with the next call to continue the
// conversation. A conversation belongs to the trusted values of the call that began it:
// a call with other values does not find it.
package agenttool
