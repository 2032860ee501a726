package crontab_test

import (
	"fmt"

	"github.com/feedscale/feedscale/pkg/crontab"
)

// A schedule fires strictly after the time it is given.
func ExampleParseNCRONTAB() {
	schedule, err := crontab.ParseNCRONTAB("0 */5 8-17 * * mon-fri")
	fmt.Println(schedule, err)
	_, err = crontab.ParseNCRONTAB("0 0 0 30 feb *")
	fmt.Println(err)
	// Output:
	// 0 */5 8-17 * * mon-fri <nil>
	// "0 0 0 30 feb *" never fires: none of its months has such a day; allowed are days that exist
}
