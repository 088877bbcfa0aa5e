// SPDX-License-Identifier: Apache-2.0

//go:build race

package command

// raceFlag builds the command as the tests are built.
var raceFlag = []string{"-race"}
