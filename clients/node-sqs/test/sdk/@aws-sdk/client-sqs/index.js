'use strict';
// Stands in for the SDK of Lambda's runtime. `answer` takes each command's name and input.
const sdk = { answer: () => ({}) };

class SQSClient {
  constructor(config) {
    sdk.config = config;
  }

  async send(command) {
    return sdk.answer(command.constructor.name, command.input);
  }
}

class Command {
  constructor(input) {
    this.input = input;
  }
}

class SendMessageCommand extends Command {}
class ChangeMessageVisibilityBatchCommand extends Command {}

module.exports = Object.assign(sdk, { SQSClient, SendMessageCommand, ChangeMessageVisibilityBatchCommand });
