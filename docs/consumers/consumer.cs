// A consumer of scale events: docs/scale-events.md. scale() is yours to write. Needs: dotnet
// add package Azure.Messaging.ServiceBus, .NET 8.

using System.Runtime.InteropServices;
using System.Text.Json;
using Azure.Messaging.ServiceBus;

var acted = new Dictionary<string, (long Epoch, long Sequence)>();   // by subject, acted on last
var stop = new TaskCompletionSource();
using var signal = PosixSignalRegistration.Create(PosixSignal.SIGTERM, context =>
{
    context.Cancel = true;   // the process ends by itself
    stop.TrySetResult();
});

await using var bus = new ServiceBusClient(Environment.GetEnvironmentVariable("SERVICEBUS"));
await using var events = bus.CreateProcessor("scale-events",
    new ServiceBusProcessorOptions { MaxConcurrentCalls = 1, AutoCompleteMessages = false });
events.ProcessErrorAsync += e => Console.Error.WriteLineAsync(e.Exception.Message);
events.ProcessMessageAsync += Handle;
await events.StartProcessingAsync();
await stop.Task;
await events.StopProcessingAsync();   // cancels the token of the message under way, and waits for it

async Task Handle(ProcessMessageEventArgs message)
{
    ScaleEvent scaleEvent;
    try
    {
        scaleEvent = Read(message.Message.Body);
    }
    catch (Exception e) when (e is JsonException or KeyNotFoundException
        or InvalidOperationException or FormatException)
    {
        await message.DeadLetterMessageAsync(message.Message, "not a scale event", e.Message);
        return;
    }
    var position = (scaleEvent.Epoch, scaleEvent.Sequence);
    var expired = DateTimeOffset.UtcNow - scaleEvent.Time > message.Message.TimeToLive;
    if (!acted.TryGetValue(scaleEvent.Subject, out var last) || position.CompareTo(last) > 0)
    {
        try
        {
            // Yours. The token is cancelled where the process ends.
            if (!expired) await Scale(scaleEvent.Subject, scaleEvent.Replicas, scaleEvent.Target, message.CancellationToken);
        }
        catch (Exception e)
        {
            await Console.Error.WriteLineAsync($"{scaleEvent.Subject}: {e.Message}");
            await Task.Delay(TimeSpan.FromSeconds(30), message.CancellationToken)
                .ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
            await message.AbandonMessageAsync(message.Message);
            return;
        }
        acted[scaleEvent.Subject] = position;
    }
    await message.CompleteMessageAsync(message.Message);
}

// Returns what a scale event says; throws where the body is none.
static ScaleEvent Read(BinaryData body)
{
    using var document = JsonDocument.Parse(body.ToMemory());
    var root = document.RootElement;
    if (root.GetProperty("type").GetString() != "feedscale.scale.v1")
        throw new FormatException("another type");
    var data = root.GetProperty("data");
    var subject = root.GetProperty("subject").GetString();
    var ofGroup = data.TryGetProperty("group", out var group) && group.ValueKind != JsonValueKind.Null;
    if (subject is null || subject != (ofGroup ? group : data.GetProperty("processor")).GetString())
        throw new FormatException("subject is neither processor nor group");
    return new ScaleEvent(
        subject,
        data.TryGetProperty("epoch", out var epoch) ? epoch.GetInt64() : 0,
        data.GetProperty("sequence").GetInt64(),
        data.GetProperty("desiredReplicas").GetInt32(),
        data.GetProperty("target").Deserialize<Dictionary<string, string>>()
            ?? throw new FormatException("no target"),
        root.GetProperty("time").GetDateTimeOffset());
}

record ScaleEvent(
    string Subject, long Epoch, long Sequence, int Replicas, Dictionary<string, string> Target, DateTimeOffset Time);
