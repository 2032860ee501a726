package functionshost

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// parseTimeSpan reads .NET's constant format, [d.]hh:mm:ss[.fffffff].
func parseTimeSpan(text string) (time.Duration, error) {
	match := regexp.MustCompile(`^(?:(\d{1,8})\.)?(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,7}))?$`).FindStringSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("%q is no time span: write it as hh:mm:ss", text)
	}
	var parts [4]int
	for i := range parts {
		parts[i], _ = strconv.Atoi(match[i+1]) // digits or nothing, which is 0
	}
	if parts[1] > 23 || parts[2] > 59 || parts[3] > 59 {
		return 0, fmt.Errorf("%q is no time span: hours go to 23, minutes and seconds to 59", text)
	}
	fraction, _ := strconv.Atoi((match[5] + "0000000")[:7])
	return time.Duration(parts[0])*24*time.Hour + time.Duration(parts[1])*time.Hour + time.Duration(parts[2])*time.Minute +
		time.Duration(parts[3])*time.Second + time.Duration(fraction)*100*time.Nanosecond, nil
}
