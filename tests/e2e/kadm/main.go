// What franz-go's kadm says of a cluster's transactions, and the aborts of a plan sent by it.
//
//	kadm BROKERS seen TOPIC...      one JSON object: the coordinators' transactions, and the open ones of the topics
//	kadm BROKERS abort < PLAN       each record of an NDJSON plan as one WriteTxnMarkers, with the answer to each
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What an executor reads of a record of the plan.
type record struct {
	Topic            string `json:"topic"`
	Partition        int32  `json:"partition"`
	ProducerID       int64  `json:"producer_id"`
	ProducerEpoch    int16  `json:"producer_epoch"`
	CoordinatorEpoch int32  `json:"coordinator_epoch"`
}

type listed struct {
	TransactionalID string `json:"transactional_id"`
	ProducerID      int64  `json:"producer_id"`
	State           string `json:"state"`
}

type open struct {
	Topic      string `json:"topic"`
	Partition  int32  `json:"partition"`
	ProducerID int64  `json:"producer_id"`
	Start      int64  `json:"txn_start_offset"`
}

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]))
	check(err)
	defer client.Close()
	admin := kadm.NewClient(client)
	if os.Args[2] == "abort" {
		abort(admin)
	} else {
		seen(admin, os.Args[3:])
	}
}

func seen(admin *kadm.Client, topics []string) {
	context := context.Background()
	transactions, err := admin.ListTransactions(context, nil, nil)
	check(err)
	answer := struct {
		Listed []listed `json:"listed"`
		Open   []open   `json:"open"`
	}{}
	for _, one := range transactions {
		answer.Listed = append(answer.Listed, listed{one.TxnID, one.ProducerID, one.State})
	}
	metadata, err := admin.Metadata(context, topics...)
	check(err)
	asked := make(kadm.TopicsSet)
	for _, topic := range metadata.Topics {
		for _, partition := range topic.Partitions {
			if partition.Leader >= 0 {
				asked.Add(topic.Topic, partition.Partition)
			}
		}
	}
	described, err := admin.DescribeProducers(context, asked)
	check(err)
	for _, topic := range described {
		for _, partition := range topic.Partitions {
			for _, producer := range partition.ActiveProducers {
				if producer.CurrentTxnStartOffset >= 0 {
					answer.Open = append(answer.Open, open{topic.Topic, partition.Partition, producer.ProducerID, producer.CurrentTxnStartOffset})
				}
			}
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(answer))
}

func abort(admin *kadm.Client) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var one record
		check(json.Unmarshal(lines.Bytes(), &one))
		topics := make(kadm.TopicsSet)
		topics.Add(one.Topic, one.Partition)
		answers, err := admin.WriteTxnMarkers(context.Background(), kadm.TxnMarkers{
			ProducerID: one.ProducerID, ProducerEpoch: one.ProducerEpoch, CoordinatorEpoch: one.CoordinatorEpoch, Topics: topics,
		})
		check(err)
		said := "no answer"
		answers.EachPartition(func(each kadm.TxnMarkersPartitionResponse) {
			said = "written"
			if each.Err != nil {
				said = each.Err.Error()
			}
		})
		fmt.Println(said)
	}
	check(lines.Err())
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
