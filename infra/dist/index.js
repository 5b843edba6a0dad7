"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.Jitter = exports.EnvelopeStyle = exports.AsyncRetries = void 0;
var async_retries_1 = require("./async-retries");
Object.defineProperty(exports, "AsyncRetries", { enumerable: true, get: function () { return async_retries_1.AsyncRetries; } });
var policy_1 = require("./policy");
Object.defineProperty(exports, "EnvelopeStyle", { enumerable: true, get: function () { return policy_1.EnvelopeStyle; } });
Object.defineProperty(exports, "Jitter", { enumerable: true, get: function () { return policy_1.Jitter; } });
