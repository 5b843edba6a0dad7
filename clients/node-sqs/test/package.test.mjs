import * as imported from 'comeback-sqs';
import { testPackage } from '../../node/test/published.mjs';

testPackage(import.meta.url, imported, ['NonRetryable', 'RetryAfter', 'consumer']);
