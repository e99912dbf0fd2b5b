/**
 * The version of everything below `larder/v1/`, raised with every change of a schema in this folder; a test compares
 * the schemas' hash with the one recorded here, so that no change of the wire is silent.
 *
 * 1  first version: session, two streams, commands
 */
export const MQTT_PROTOCOL_VERSION = 1

/** Of the schemas and topics at this version (`test/protocol/mqtt/version.test.ts`). */
export const MQTT_SCHEMA_HASH = '51b56617d77bf29c'
