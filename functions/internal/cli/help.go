package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/console"
)

// environment is the annotation of a command that names its settings.
const environment = "environment"

// Settings annotates a command with the settings that matter to it, for its help.
func Settings(names ...string) map[string]string {
	return map[string]string{environment: strings.Join(names, " ")}
}

// settingMeanings is a line for each setting that the help of a command names; docs/configure.md has all
// of each.
var settingMeanings = [][2]string{
	{"FEEDSCALE_CONFIG", "the processors file, where --config is not given; processors.yaml by default"},
	{"FEEDSCALE_PROCESSORS", "the same document inline; wins over the file"},
	{"FEEDSCALE_STATE", "where states are kept: bolt:PATH, table:SETTING/TABLE, or the https address of a table"},
	{"FEEDSCALE_EVENTS", "where decisions go: stdout: or servicebus:SETTING/QUEUE"},
	{"FEEDSCALE_TIMER_SCHEDULE", "when ticks are, as NCRONTAB; */15 * * * * * by default"},
	{"FEEDSCALE_LISTEN", "host:port of HTTP; 127.0.0.1:7071 by default"},
	{"FEEDSCALE_HEALTH_LISTEN", "host:port of /healthz alone, for probes"},
	{"FEEDSCALE_SCALER_LISTEN", "host:port of KEDA's external scaler"},
	{"FEEDSCALE_URL", "the feedscale that is asked, where --url is not given"},
	{"FEEDSCALE_API_KEY", "the key that HTTP is asked with, and asks for beyond loopback"},
	{"FEEDSCALE_WEBHOOK_SECRET", "what the webhook is signed with"},
	{"FEEDSCALE_RU_BUDGET", "request units a second that polls may use"},
	{"FEEDSCALE_TICK_TIMEOUT", "deadline of one tick; 60s by default"},
	{"FEEDSCALE_LOG_LEVEL", "debug, info, warn or error"},
	{"NO_COLOR", "anything: no colors"},
	{"COLUMNS", "width of what is printed, where it goes to no terminal"},
}

// helpWidth bounds the lines of help where there is no terminal, or a wider one.
const helpWidth = 100

// writeHelp prints how a command is called, its flags, the settings that matter to it, and examples; of
// the whole program, its commands.
func writeHelp(w io.Writer, c *cobra.Command, style console.Style) {
	c.InitDefaultHelpFlag()
	width := min(cmp.Or(style.Width, helpWidth), helpWidth)
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s\n\n%s\n", c.UseLine(), console.Wrap(strings.ToUpper(c.Short[:1])+c.Short[1:]+".", "", width))
	for _, group := range append(c.Groups(), &cobra.Group{Title: "other commands"}) {
		title := "\n" + group.Title + ":\n"
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.GroupID == group.ID {
				b.WriteString(title + console.Wrap(fmt.Sprintf("  %-*s  %s", c.NamePadding(), sub.Name(), sub.Short), strings.Repeat(" ", c.NamePadding()+4), width) + "\n")
				title = ""
			}
		}
	}
	b.WriteString("\nflags:\n" + c.Flags().FlagUsagesWrapped(width))
	if names := strings.Fields(c.Annotations[environment]); len(names) > 0 {
		b.WriteString("\nenvironment:\n")
		for _, setting := range settingMeanings {
			if slices.Contains(names, setting[0]) {
				b.WriteString(console.Wrap(fmt.Sprintf("  %-24s  %s", setting[0], setting[1]), strings.Repeat(" ", 28), width) + "\n")
			}
		}
	}
	if c.Example != "" {
		b.WriteString("\nexamples:\n")
		for example := range strings.Lines(c.Example) {
			b.WriteString("  " + example)
		}
		b.WriteString("\n")
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n'%s COMMAND --help' lists a command's flags.\n", c.CommandPath())
	}
	io.WriteString(w, b.String()) // there is nobody to tell where this fails
}
