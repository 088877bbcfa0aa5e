// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

func (p *program) chatCommand() *cobra.Command { return &cobra.Command{Use: "chat"} }
func (p *program) callCommand() *cobra.Command { return &cobra.Command{Use: "call"} }
