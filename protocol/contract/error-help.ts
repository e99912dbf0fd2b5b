import type { ErrorCode } from '../model/error-codes.ts'

/** For people who meet an error: why it comes, and what they do about it. One line for each code; the documentation shows them. */
export const errorHelp: Readonly<Record<ErrorCode, { cause: string; cure: string }>> = {
  invalid_cursor: {
    cause: 'The cursor is of another list, or what it names is no longer kept.',
    cure: 'Begin without a cursor. For events: what is missing is older than they are kept; read the resources themselves.',
  },
  bad_request: {
    cause:
      'The request is not well-formed HTTP: a bad header, no `Host` or two, or a target that is not a path.',
    cure: 'Use an HTTP library, and send one `Host` header.',
  },
  expectation_failed: {
    cause: 'The request has an `Expect` header other than `100-continue`.',
    cure: 'Leave the header out.',
  },
  headers_too_large: {
    cause: 'The headers, with the address and the token, have more than 32 KiB.',
    cure: 'Shorten the address, or have the issuer put fewer roles into the token.',
  },
  webhook_limit_reached: {
    cause: 'The owner has `WEBHOOKS_PER_OWNER` webhooks (16 by default).',
    cure: 'Delete a webhook that is no longer used, or subscribe one webhook to several types of events.',
  },
  invalid_json: {
    cause: 'The body is not JSON, or not UTF-8.',
    cure: 'Send what a JSON encoder makes, with `Content-Type: application/json`.',
  },
  invalid_signature: {
    cause: 'A processor’s event without signature, with another secret, or older than five minutes.',
    cure: 'Give the service the secret of the endpoint, and put the sender’s clock right.',
  },
  authentication_required: {
    cause: 'No credential came, or it stands in another header.',
    cure: 'Send `X-API-Key` or `Authorization: Bearer …`; the message says which of them was seen where.',
  },
  invalid_api_key: {
    cause: 'The key is misspelt, or was revoked.',
    cure: 'Take the whole of it, `lk_` included. A revoked one is replaced by its operator.',
  },
  invalid_token: {
    cause: 'The token is of another issuer or audience, or its signature is wrong.',
    cure: 'Get a new one from the issuer that the service is set to.',
  },
  token_expired: { cause: 'The token or key is past its time.', cure: 'Get a new one and repeat the call.' },
  refund_failed: {
    cause: 'The processor refused it; `details.failure_reason` says why.',
    cure: 'It is tried again, and an alarm is raised when that is in vain. Otherwise pay the customer another way.',
  },
  card_declined: {
    cause: 'The bank refused the card; `details.decline_code` says why.',
    cure: 'Ask for another card. The order is a cart again.',
  },
  insufficient_funds: {
    cause: 'The wallet holds less than the total.',
    cure: 'Deposit first, or pay by card.',
  },
  payment_failed: {
    cause: 'The processor could not take the money.',
    cure: 'Try once more, or take another method. The order is a cart again.',
  },
  scope_missing: {
    cause: 'The credential is valid and lacks `details.required_scope`.',
    cure: 'Use a key with that scope. Writing does not include reading, and scopes of a key never change.',
  },
  unauthorized: {
    cause: 'A maintenance report for a hub that the credential has no access to.',
    cure: 'Use a credential with access to it.',
  },
  hub_access_denied: {
    cause: 'The key is limited to other hubs, or the hub does not exist: such a key is not told which.',
    cure: 'Check the id, then the key’s hubs.',
  },
  forbidden: {
    cause: 'The path names a user who is not the token’s, or a file’s address is unsigned or expired.',
    cure: 'Take `user_id` from `bootstrap`; ask for the object again to get a fresh address.',
  },
  external_payments_disabled: {
    cause:
      'The hub’s setting `external_payments` is `off`, or it is `customers` and the caller is an anonymous user.',
    cure: 'Pay by card or from the wallet. The operator enables external payments with `larder hubs set ID --external-payments customers`.',
  },
  hub_not_found: { cause: 'There is no such hub.', cure: 'List them: `GET /owners/hubs`.' },
  product_not_found: {
    cause: 'The hub has no such product.',
    cure: 'List them: `GET /hubs/{hub_id}/products`. Ids are of one hub.',
  },
  order_not_found: {
    cause: 'There is none, it is another’s, or an expired cart was deleted.',
    cure: 'Begin a new cart, or list the orders.',
  },
  bin_not_found: {
    cause: 'The hub has no bin of that number.',
    cure: 'See `GET /owners/hubs/get_hub_health`.',
  },
  deal_not_found: { cause: 'There is none, or it is another owner’s.', cure: 'List the deals of the hub.' },
  not_found: { cause: 'What the path names is not there.', cure: 'Check the id.' },
  product_not_in_order: {
    cause: 'The order has no line with this product id or UPC.',
    cure: 'Take `product_id` from the order’s `order_items`.',
  },
  user_not_found: {
    cause: 'The token is valid and has no user yet.',
    cure: 'Call `POST /users/user/bootstrap`, or `…/bootstrap/guest`, once.',
  },
  payment_method_not_found: {
    cause: 'There is none of that id, or it is another customer’s.',
    cure: 'List them: `GET /users/payments/methods`.',
  },
  fridge_not_found: {
    cause: 'The hub has no fridge of that number.',
    cure: 'See `GET /owners/hubs/get_hub_health`.',
  },
  banner_not_found: {
    cause: 'There is none, or it is another owner’s.',
    cure: 'List the banners of the hub.',
  },
  webhook_not_found: {
    cause: 'There is none, or it is another owner’s.',
    cure: 'List them: `GET /owners/webhooks`.',
  },
  alarm_not_found: {
    cause: 'There is none, or it is another owner’s.',
    cure: 'List them: `GET /owners/alarms`.',
  },
  delivery_not_found: {
    cause: 'The webhook has no such delivery, or it is no longer kept.',
    cure: 'List them: `GET /owners/webhooks/{id}/deliveries`.',
  },
  operation_not_found: {
    cause: 'There is none, or it is another owner’s.',
    cure: 'List them: `GET /owners/operations`.',
  },
  route_not_found: {
    cause: 'The path is misspelt, or `/api/v1` is missing or there twice.',
    cure: 'The message names the endpoint that was probably meant.',
  },
  method_not_allowed: { cause: 'The path exists with other methods.', cure: '`Allow` names them.' },
  already_refunded: { cause: 'Nothing of the order is left to refund.', cure: 'Nothing: it is done.' },
  order_in_progress: {
    cause: 'An order of the customer’s, or at the hub, is between QUEUED and COLLECTING.',
    cure: 'Wait for its end, then repeat.',
  },
  order_already_paid: { cause: 'The order is paid.', cure: 'Read it: no second payment is needed.' },
  order_not_editable: {
    cause: 'The order is no cart any more: it is being paid, or was.',
    cure: 'Cancel the payment, or begin a new cart.',
  },
  order_not_ready: { cause: 'Nothing is in a bin yet, or no longer.', cure: 'Follow the order until READY.' },
  order_not_deletable: {
    cause: 'The hub has begun it, or it has ended.',
    cure: 'Refund what is wrong instead.',
  },
  order_state_conflict: {
    cause: 'Somebody else has changed the order since it was read.',
    cure: 'Read it again, look at it, and repeat with its `version`.',
  },
  total_changed: {
    cause: 'Prices or deals have changed: the total is not `expected_total`.',
    cure: 'Show the new total, and ask again. Nothing was taken.',
  },
  insufficient_stock: {
    cause: 'Others have bought what was left.',
    cure: 'Read the products, and lower the quantity.',
  },
  hub_not_accepting_orders: {
    cause: 'The hub is paused, silent, full, or was never connected.',
    cure: 'Try later, or another hub; `hub_status` says which.',
  },
  no_bin_available: {
    cause: 'All delivery bins are taken by orders that nobody has collected.',
    cure: 'Try again in some minutes. Nothing was taken.',
  },
  wallet_not_empty: {
    cause: 'The account holds `details.balance_cents`, or a deposit is under way.',
    cure: 'Spend it, or give it up with `forfeit=true`.',
  },
  operation_settled: {
    cause: 'Somebody has settled it the other way.',
    cure: 'Read it; count the row if both cannot be true.',
  },
  duplicate_upc: { cause: 'Another product of this hub has the UPC.', cure: 'Change that product instead.' },
  idempotency_key_in_use: {
    cause: 'The first request with this key is still under way.',
    cure: 'Wait a second and repeat it as it was.',
  },
  request_timeout: { cause: 'The body came too slowly.', cure: 'Repeat it.' },
  payload_too_large: {
    cause: 'The body, a file, or all files together are above the limit.',
    cure: 'Send less; the limits stand at the endpoint and in the guide on limits.',
  },
  unsupported_media_type: {
    cause: 'The body is no JSON, or a file is no image or video of those that are taken, whatever its name.',
    cure: 'Set `Content-Type`; convert the file.',
  },
  range_not_satisfiable: { cause: 'The file is shorter.', cure: 'Ask without `Range`.' },
  cart_empty: { cause: 'The order has no items.', cure: 'Put something in first.' },
  amount_too_small: {
    cause: 'The total is less than a card can pay: `details.least`.',
    cure: 'Pay by wallet, or add an item.',
  },
  validation_error: {
    cause: 'A field is missing, of another type, or against a rule.',
    cure: 'The message names the field and the rule; `detail` lists all of them.',
  },
  invalid_location: {
    cause: 'The hub has no such cabinet, shelf or row.',
    cure: 'List them: `GET /owners/hubs/facings`.',
  },
  invalid_quantity: {
    cause: 'The quantity is negative, no whole number, or more than the row holds.',
    cure: 'Send what was counted.',
  },
  invalid_price: { cause: 'The price is no positive whole number.', cure: 'Send cents: 1.89 is 189.' },
  insufficient_quantity: {
    cause: 'More units than were bought, or than are left to refund.',
    cure: 'See `qty` and what was refunded in the order.',
  },
  hub_id_required: { cause: 'The form has no `hubId`.', cure: 'Name the hub in the form.' },
  invalid_amount: {
    cause: 'The amount is not between 1 and what can still be refunded.',
    cure: 'Read the order; leave `amount` out to refund the rest.',
  },
  invalid_destination: {
    cause: 'The destination is another than “Bank Account”, or two fields differ.',
    cure: 'Leave it out: money goes back the way it came.',
  },
  bin_not_in_order: {
    cause: 'The order has nothing in that bin.',
    cure: 'See `bins` of the order, or name none for all.',
  },
  invalid_upc: { cause: 'A digit is wrong or missing.', cure: 'Send all 12 digits, as text.' },
  invalid_purchase_price: {
    cause: 'The purchase price is negative or no whole number.',
    cure: 'Send cents: 0.70 is 70.',
  },
  idempotency_key_reused: {
    cause: 'The key was used with another request within 24 hours.',
    cure: 'Make a new key for each thing that you want done.',
  },
  rate_limit_exceeded: {
    cause: 'The allowance of the minute is used up.',
    cure: 'Wait for `Retry-After` seconds. Refused calls cost nothing.',
  },
  internal_error: {
    cause: 'Ours.',
    cure: 'Repeat it with the same `Idempotency-Key`; tell the operator the `request_id`.',
  },
  hardware_error: {
    cause:
      'The hub did not do it: `details.reason` is `offline`, `nack`, `fault` or `interlock` (502), or `timeout` (504), where it may have moved.',
    cure: 'At 502 look at the hub’s health, and ask again. At 504 look before you repeat: `details.command_id` names the command.',
  },
  processor_unavailable: {
    cause: 'The card processor does not answer.',
    cure: 'Repeat it with the same `Idempotency-Key` after `Retry-After`. It does not happen later by itself.',
  },
  identity_unavailable: {
    cause: 'The issuer’s keys cannot be read.',
    cure: 'Repeat it after `Retry-After`.',
  },
  service_unavailable: {
    cause: 'The database is away or busy, or the service is starting or stopping.',
    cure: 'Repeat it after `Retry-After`, with the same `Idempotency-Key`.',
  },
  hub_offline: {
    cause: 'The hub has not been heard for 90 seconds.',
    cure: 'See `GET /owners/alarms`, and try later.',
  },
}
