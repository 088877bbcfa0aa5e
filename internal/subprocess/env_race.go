// SPDX-License-Identifier: Apache-2.0

//go:build race

package subprocess

// The options of the race detector are for the processes of a test too, which otherwise
// wait a second each before they end.
func init() { inheritedEnv = append(inheritedEnv, "GORACE") }
