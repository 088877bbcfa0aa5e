// SPDX-License-Identifier: Apache-2.0

package command

import (
	"time"
)

// milliseconds converts a duration to its JSON form.
func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

// asideJSON is a tool that is not offered.
type asideJSON struct {
	Ensemble string `json:"ensemble"`
	Tool     string `json:"tool"`
	Reason   string `json:"reason"`
}

// awayJSON is an ensemble that could not be reached.
type awayJSON struct {
	Ensemble string `json:"ensemble"`
	Error    string `json:"error"`
}
