import * as imported from 'comeback-envelope';
import { testPackage } from './published.mjs';

testPackage(import.meta.url, imported, ['NonRetryable', 'RetryAfter', 'openEvent', 'opened']);
