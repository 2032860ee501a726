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

// The limits of the service: 64 KiB per property, which is 32 Ki UTF-16 code units of a string, and
// 1 MiB per entity with its keys and names
// (https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model).
// One chunk of 64 KiB is left for the keys, the names and the columns that people read.
const (
	maxStringUnits = 32_000
	maxChunkBytes  = 64 << 10
	maxChunks      = 15

	// maxUnpacked is the most that a compressed state may have, in bytes: states compress to a tenth.
	maxUnpacked = 64 << 20
	// maxRows is the most that a query reads.
	maxRows = 100_000
)

func fitsString(text []byte) bool {
	units := 0
	for _, r := range string(text) {
		units += utf16.RuneLen(r)
	}
	return units <= maxStringUnits
}

// split stores content in the properties name0, name1 and so on, at least one. The error says how
// many bytes there is room for.
func split(properties map[string]any, name string, content []byte) error {
	if len(content) > maxChunks*maxChunkBytes {
		return fmt.Errorf("it takes %d bytes, of %d", len(content), maxChunks*maxChunkBytes)
	}
	for i := 0; i == 0 || len(content) > 0; i++ {
		chunk := content[:min(len(content), maxChunkBytes)]
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
	text, err := io.ReadAll(io.LimitReader(reader, maxUnpacked+1))
	if err == nil && len(text) > maxUnpacked {
		return nil, fmt.Errorf("it is longer than %d MiB once decompressed", maxUnpacked>>20)
	}
	return text, err
}
