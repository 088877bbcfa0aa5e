// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// streamKinds returns the faults of messages other than answers.
func streamKinds() []kind {
	return []kind{
		{Info{"junk", "Lines that are not messages, of Size bytes in total (200), are sent first. Over HTTP they are unknown fields of events.",
			anywhere(), connected()}, junkFirst(200)},
		{Info{"flood-stdout", `As "junk", of 10 MiB.`,
			anywhere(), connected()}, junkFirst(10 << 20)},
		{Info{"endless-line", "A line of Size bytes (100 MiB) without an end is sent, and then nothing more; over HTTP within the response.",
			anywhere(), connected()}, endlessLine},
		{Info{"list-changed-storm", "Count notifications (1000) of a changed list of tools are sent first.",
			connected(), connected()}, listChangedStorm},
		{Info{"progress-storm", "Count progress notifications (10000) are sent first: for the call, or with an unknown token if the call did not ask for progress.",
			[]Place{"before-effect", "after-effect"}, []Place{"before-effect", "after-effect"}}, progressStorm},
		{Info{"log-storm", "Count log messages (10000) are sent first.",
			connected(), connected()}, logStorm},
	}
}

// storm sends count messages while sending works. The server continues even if the
// client does not wait for all of them.
func (o *occasion) storm(count int, message func(i int) writer) bool {
	for i := 1; i <= count && !o.server.hasEnded(); i++ {
		if err := o.link.message(message(i)); err != nil {
			break
		}
	}
	return true
}

func listChangedStorm(o *occasion) bool {
	changed := notification("notifications/tools/list_changed", "{}")
	return o.storm(cmp.Or(o.rule.Count, 1000), func(int) writer { return changed })
}

func progressStorm(o *occasion) bool {
	token := o.request.Params.Meta.Token
	if len(token) == 0 {
		token = json.RawMessage(`"nobody asked"`)
	}
	count := cmp.Or(o.rule.Count, 10_000)
	return o.storm(count, func(i int) writer { return progressNotification(token, i, count, "storm") })
}

func logStorm(o *occasion) bool {
	return o.storm(cmp.Or(o.rule.Count, 10_000), func(i int) writer {
		return notification("notifications/message", fmt.Sprintf(`{"level":"info","logger":"storm","data":"message %d"}`, i))
	})
}

func junkFirst(otherwise int64) func(*occasion) bool {
	return func(o *occasion) bool {
		_ = o.link.raw(func(w io.Writer) error { // ignores errors, as storm does
			if err := junk(cmp.Or(o.rule.Size, otherwise))(w); err != nil || o.server.transport != viaHTTP {
				return err
			}
			_, err := io.WriteString(w, "\n") // ends the event
			return err
		})
		return true
	}
}

func endlessLine(o *occasion) bool {
	err := o.link.raw(func(w io.Writer) error {
		return errors.Join(o.eventStart(w), fill(w, cmp.Or(o.rule.Size, 100<<20)))
	})
	o.link.mute()
	return err == nil && o.hang()
}
