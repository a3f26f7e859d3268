"""Moving the policy's weights into generation: encoded, sent, applied, and checked on both sides."""
