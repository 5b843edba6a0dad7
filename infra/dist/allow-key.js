"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.allowKey = allowKey;
/**
 * Lets a role use the key of a queue, if the queue has one.
 *
 * @throws if the key cannot be granted from here: without the permission, events would be lost in silence
 */
function allowKey({ encryptionMasterKey: key }, role, ...actions) {
    if (key !== undefined && !key.grant(role, ...actions).success) {
        throw new Error(`${key.node.path} cannot be granted to ${role.node.path}; import the key by Key.fromKeyArn, not an alias by its name`);
    }
}
