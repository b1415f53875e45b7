"""The truth, written for reading. Tested against PyTorch where PyTorch agrees; imports nothing else of the package."""
