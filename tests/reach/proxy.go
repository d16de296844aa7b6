// A proxy on loopback before an S3 server: it counts requests and bytes, and answers late, wrongly or in part.
//
//	go run proxy.go -listen 127.0.0.1:7071 -to 127.0.0.1:7070 -delay 30ms -fail 20 -status 503 -cut 20
//
// GET /.counts answers with "requests bytes", and begins to count anew.
package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

var requests, sent atomic.Int64

// counted counts what goes through; with a limit above 0 it ends too early.
type counted struct {
	io.ReadCloser
	limit int64
}

func (body *counted) Read(into []byte) (int, error) {
	count, err := body.ReadCloser.Read(into)
	sent.Add(int64(count))
	if body.limit > 0 {
		body.limit -= int64(count)
		if body.limit <= 0 {
			return count, io.ErrUnexpectedEOF
		}
	}
	return count, err
}

func main() {
	listen := flag.String("listen", "127.0.0.1:7071", "address")
	to := flag.String("to", "127.0.0.1:7070", "address of the server")
	delay := flag.Duration("delay", 0, "before each request")
	fail := flag.Int64("fail", 0, "one request of so many is answered with -status; 0: none")
	status := flag.Int("status", 503, "of these")
	cut := flag.Int64("cut", 0, "the body of one GET of so many is cut; 0: of none")
	only := flag.String("only", "", "faults only where the address has this in it")
	flag.Parse()
	server := &url.URL{Scheme: "http", Host: *to}
	proxy := &httputil.ReverseProxy{
		// The name of the host stays as it is: it is part of what is signed.
		Director: func(request *http.Request) { request.URL.Scheme, request.URL.Host = server.Scheme, server.Host },
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 256, DisableCompression: true, WriteBufferSize: 1 << 16, ReadBufferSize: 1 << 18,
		},
		ModifyResponse: func(answer *http.Response) error {
			body := &counted{ReadCloser: answer.Body}
			is_meant := strings.Contains(answer.Request.URL.Path, *only)
			if *cut > 0 && is_meant && answer.Request.Method == "GET" && requests.Load()%*cut == 0 && answer.ContentLength > 8 {
				body.limit = answer.ContentLength / 2
			}
			answer.Body = body
			return nil
		},
		ErrorLog: nil,
	}
	http.ListenAndServe(*listen, http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/.counts" {
			fmt.Fprintf(answer, "%d %d", requests.Swap(0), sent.Swap(0))
			return
		}
		number := requests.Add(1)
		time.Sleep(*delay)
		if *fail > 0 && number%*fail == 0 && strings.Contains(request.URL.Path, *only) {
			io.Copy(io.Discard, request.Body)
			answer.WriteHeader(*status)
			return
		}
		defer func() { recover() }() // a body that is cut on purpose ends the connection
		proxy.ServeHTTP(answer, request)
	}))
}
