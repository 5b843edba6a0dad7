import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const path = require.resolve('@aws-sdk/client-sqs');

/** A fake AWS SDK that passes each command to `answer`. */
const sdk = {
  answer: () => ({}),
  SQSClient: class {
    constructor({ requestHandler, useQueueUrlAsEndpoint }) {
      assert.equal(useQueueUrlAsEndpoint, false, 'otherwise the calls leave the endpoint of the SDK');
      assert.ok(requestHandler.throwOnRequestTimeout, 'otherwise the SDK only warns of a timeout');
    }
    async send(command, { abortSignal }) {
      const { input } = command;
      const answer = await sdk.answer(command.constructor.name.replace('Command', ''), input);
      abortSignal.throwIfAborted();
      const Successful = input.Entries?.map(({ Id }) => ({ Id }));
      return { MessageId: '1', Successful, ...answer };
    }
  },
  SendMessageCommand: class SendMessageCommand {
    constructor(input) {
      this.input = input;
    }
  },
  DeleteMessageBatchCommand: class DeleteMessageBatchCommand {
    constructor(input) {
      this.input = input;
    }
  },
  ChangeMessageVisibilityBatchCommand: class ChangeMessageVisibilityBatchCommand {
    constructor(input) {
      this.input = input;
    }
  },
};
require.cache[path] = { id: path, filename: path, loaded: true, exports: sdk };

/** Records log lines and calls to SQS, with the clock fixed at `now`. */
export function recorded(t, now, answer = () => ({})) {
  const calls = [];
  const lines = [];
  t.mock.method(sdk, 'answer', (name, call) => {
    calls.push([name, call]);
    return answer(name, call);
  });
  t.mock.timers.enable({ apis: ['Date'], now });
  // The test runner also writes to standard output, so only log lines are captured.
  const write = process.stdout.write.bind(process.stdout);
  t.mock.method(process.stdout, 'write', (line, ...rest) => {
    if (typeof line !== 'string' || !line.startsWith('{"timestamp"')) return write(line, ...rest);
    return lines.push(JSON.parse(line)) > 0;
  });
  return { calls, lines };
}
