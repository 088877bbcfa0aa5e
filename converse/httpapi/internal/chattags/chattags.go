// SPDX-License-Identifier: Apache-2.0

// Package chattags makes and reads the tags of conversations that requests of Chat Completions
// begin. A later request finds the conversation that it continues with them.
package chattags

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/consort-go/consort/converse/history"
)

const (
	prefix         = "chat:"              // begins all tags of a chat
	endPrefix      = prefix + "until-"    // begins the tag of End
	questionPrefix = prefix + "question-" // begins the tag of Question
)

// Messages returns the tag of a conversation that ends with the messages of a digest.
func Messages(digest string) string { return prefix + digest }

// Question returns the tag of a conversation that waits with a question.
func Question(id string) string { return questionPrefix + id }

// end returns the tag that says where the last answer of a chat ends. A fork inherits the tag, so
// it names its conversation.
func end(conversation string, position int) string {
	return fmt.Sprintf("%s%d-%s", endPrefix, position, conversation)
}

// End returns the position where the last answer of a chat ends. It is not ok in a fork, which has
// the tags of another conversation.
func End(of history.Info) (position int, ok bool) {
	for _, tag := range of.Tags {
		if rest, is := strings.CutPrefix(tag, endPrefix); is {
			number, id, _ := strings.Cut(rest, "-")
			n, err := strconv.Atoi(number)
			return n, err == nil && id == of.ID && n <= of.Length
		}
	}
	return of.Length, true // stored by an earlier version
}

// Change returns the change that replaces the tags of a chat: its last answer ends at a position,
// with messages that have a tag, and with a question, if it is not empty. Other tags stay.
func Change(conversation string, position int, messages, question string) history.Change {
	return history.Change{Retag: func(tags []string) []string {
		tags = slices.DeleteFunc(tags, func(tag string) bool { return strings.HasPrefix(tag, prefix) })
		tags = append(tags, messages, end(conversation, position))
		if question != "" {
			tags = append(tags, Question(question))
		}
		return tags
	}}
}
