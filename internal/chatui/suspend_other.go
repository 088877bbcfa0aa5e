// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package chatui

import tea "charm.land/bubbletea/v2"

// resumed says that Ctrl-Z was pressed, which stops no process here.
type resumed struct{ stopped bool }

func suspend(int) tea.Cmd { return func() tea.Msg { return resumed{} } }
