"""The policy as a real Megatron-Core model, imported and exported by Megatron-Bridge; on CPU with gloo, or on GPUs."""
