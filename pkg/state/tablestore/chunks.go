package tablestore

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// The service's limits: 64 KiB a property, of which a string has about 32 Ki
// UTF-16 code units, and 1 MiB an entity with its keys and names. One chunk is
// left for those and for the columns that people read.
const (
	maxStringUnits = 32_000
	maxChunk       = 64 << 10
	maxChunks      = 15
)

func fitsString(text []byte) bool {
	units := 0
	for _, r := range string(text) {
		units += utf16.RuneLen(r)
	}
	return units <= maxStringUnits
}

// split spreads content over the properties name0, name1 and so on, at least
// one. The error says how much there is room for.
func split(properties map[string]any, name string, content []byte) error {
	if len(content) > maxChunks*maxChunk {
		return fmt.Errorf("it takes %d bytes, of %d", len(content), maxChunks*maxChunk)
	}
	for i := 0; i == 0 || len(content) > 0; i++ {
		chunk := content[:min(len(content), maxChunk)]
		properties[chunkName(name, i)] = aztables.EDMBinary(chunk)
		content = content[len(chunk):]
	}
	return nil
}

// join is the inverse of split.
func join(properties map[string]any, name string) ([]byte, error) {
	var content []byte
	for i := 0; ; i++ {
		chunk, ok := properties[chunkName(name, i)].(aztables.EDMBinary)
		switch {
		case ok:
			content = append(content, chunk...)
		case i == 0:
			return nil, fmt.Errorf("it has no %s", chunkName(name, 0))
		default:
			return content, nil
		}
	}
}

func chunkName(name string, i int) string { return fmt.Sprintf("%s%d", name, i) }

func compress(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = writer.Write(text)
	err = errors.Join(err, writer.Close())
	return packed.Bytes(), err
}

func decompress(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
