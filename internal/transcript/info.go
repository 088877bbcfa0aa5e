// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"time"

	"github.com/consort-go/consort/converse/history"
)

// About is the JSON form of a [history.Info].
type About struct {
	ID           string    `json:"id"`
	Title        string    `json:"title,omitempty"`
	Tags         []string  `json:"tags"`
	Owner        string    `json:"owner,omitempty"`
	Created      time.Time `json:"created"`
	Changed      time.Time `json:"changed"`
	Length       int       `json:"length"`
	Last         string    `json:"last,omitempty"`
	Parent       string    `json:"parent,omitempty"`
	ParentLength int       `json:"parent_length,omitempty"`
}

// AboutOf returns the form of info, with its times in UTC.
func AboutOf(info history.Info) About {
	return About{
		info.ID, info.Title, append([]string{}, info.Tags...), info.Owner, info.Created.UTC(), info.Changed.UTC(),
		info.Length, string(info.Last), info.Parent, info.ParentLength,
	}
}
